import assert from 'node:assert/strict'
import { lookupOf } from '../../../src/engine/capability-checks.ts'
import type { Inspector } from '../../../src/engine/engine.ts'
import { HISTORY_MAX } from '../../../src/job/job.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, deadLetters, inspection, looking, need } from '../../needs.ts'
import { boom, complete, dead, never, release, retry, type Stage } from '../../stage.ts'

const by = { who: 'suite', reason: 'test' }

function inspectorOf(stage: Stage): Inspector {
  assert.ok(stage.engine.inspector, 'the engine declares inspection and has no inspector')
  return stage.engine.inspector
}

const names = async (stage: Stage, id: string): Promise<readonly string[]> =>
  (await inspectorOf(stage).history(id)).map(({ name }) => name)

export const inspecting: CaseFile = {
  level: 'port',
  concept: 'Looking at jobs',
  cases: [
    {
      name: 'the history of a job has an end: the oldest lines go first, and the line of its enqueue stays',
      guarantees: ['I9'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put({ attempts: 1_000 })
        const consumer = await stage.consume()
        // Every other start is given back and counts nothing.
        const starts = HISTORY_MAX
        for (let start = 0; start < starts; start += 1) {
          await stage.settle(consumer, await stage.one(consumer), start % 2 === 0 ? release() : retry())
        }
        const history = (await stage.engine.inspector?.history(id)) ?? []
        assert.ok(history.length <= HISTORY_MAX && history.length > HISTORY_MAX / 2, `${history.length} lines`)
        assert.deepEqual([history[0]?.name, history.at(-1)?.name], ['enqueued', 'retried'])
        assert.equal(history.at(-1)?.attempt, starts / 2, 'the newest line is there')
        assert.ok((history[1]?.attempt ?? 0) > 1, 'the oldest lines are gone')
      },
    },
    {
      name: 'jobs are found in the order of their ids; an unknown one is null',
      guarantees: ['I1'],
      ...need(looking),
      async run(stage) {
        const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
        const [one, other] = [await stage.put(), await stage.put()]
        const found = await lookupOf(stage.engine).find([other.id, id, one.id, other.id])
        assert.deepEqual(
          found.map((job) => job?.id ?? null),
          [other.id, null, one.id, other.id],
        )
        assert.deepEqual(await lookupOf(stage.engine).find([]), [])
      },
    },
    {
      name: 'an unknown job has no history, and waiting for it ends at once',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
        assert.deepEqual(await inspectorOf(stage).history(id), [])
        assert.equal(
          await stage.promptly(inspectorOf(stage).waitFor(id, { waitMs: 0, signal: never }), 'the answer'),
          null,
        )
      },
    },
    {
      name: 'a waiting job is shown with everything it was enqueued with',
      guarantees: ['I1'],
      ...need(looking),
      async run(stage) {
        const fields = { priority: 2, attempts: 9, payload: '[1]', tenant: { orgId: 'o' }, options: { timeoutMs: 7 } }
        const { id } = await stage.put({ ...fields, payloadVersion: 2 })
        const view = await stage.view(id)
        const { type, priority, attempts, payload, tenant, options, payloadVersion } = view
        assert.deepEqual(
          { type, priority, attempts, payload, tenant, options, payloadVersion },
          {
            ...fields,
            type: stage.type,
            payloadVersion: 2,
          },
        )
        assert.deepEqual([view.state, view.attempt, view.result, view.error], ['queued', 0, null, null])
        assert.deepEqual([view.startedAtMs, view.completedAtMs, view.durationMs], [null, null, null])
      },
    },
    {
      // B35 B36 B89
      name: 'a completed job shows its result and its times',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await stage.harness.advance(30)
        await stage.settle(consumer, lease, { kind: 'complete', result: '{"sent":[1,"ü"]}', durationMs: 30 })
        const view = await stage.view(id)
        assert.deepEqual([view.state, view.result, view.durationMs], ['completed', { sent: [1, 'ü'] }, 30])
        assert.ok(view.completedAtMs !== null && view.startedAtMs !== null)
        assert.ok(view.completedAtMs - view.startedAtMs >= 30)
        assert.deepEqual([view.leaseOwner, view.leaseUntilMs], [null, null])
      },
    },
    {
      // B123
      name: 'a dead job shows its error and when it ended',
      guarantees: ['I9'],
      ...need(looking),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        const view = await stage.view(id)
        assert.deepEqual([view.state, view.error, view.result], ['dead_letter', boom, null])
        assert.ok(view.completedAtMs !== null)
      },
    },
    {
      name: 'jobs are listed newest first, page by page',
      guarantees: ['I1'],
      ...need(looking),
      async run(stage) {
        const jobs = stage.jobs(7)
        await stage.engine.enqueue(jobs)
        const newest = jobs.map(({ id }) => id).reverse()
        const pages: string[] = []
        for (let page = 0; page < 3; page += 1) {
          const before = pages.at(-1)
          const views = await lookupOf(stage.engine).list({ limit: 3, ...(before !== undefined && { before }) })
          pages.push(...views.map(({ id }) => id))
        }
        assert.deepEqual(pages, newest)
      },
    },
    {
      name: 'the job that has been due longest is found, and none when none is due',
      guarantees: ['I6'],
      ...need(looking),
      async run(stage) {
        const oldest = async (): Promise<string | undefined> => (await lookupOf(stage.engine).oldestDue())?.id
        assert.equal(await lookupOf(stage.engine).oldestDue(), null)
        const first = await stage.put({ priority: 9 })
        await stage.harness.advance(20)
        const second = await stage.put({ type: `${stage.type}-b`, priority: 1 })
        assert.equal(await oldest(), first.id, 'priority is not age')
        const consumer = await stage.consume()
        await stage.one(consumer)
        assert.equal(await oldest(), second.id, 'what runs does not wait')
      },
    },
    {
      name: 'jobs are listed by state and by type',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const [a, b] = [`${stage.type}-a`, `${stage.type}-b`]
        const done = await stage.put({ type: a })
        const consumer = await stage.consume({ types: [a] })
        await stage.settle(consumer, await stage.one(consumer), complete)
        const running = await stage.put({ type: a })
        await stage.one(consumer)
        const waiting = await stage.put({ type: a })
        const foreign = await stage.put({ type: b })
        const ids = async (filter: Parameters<Inspector['list']>[0]): Promise<readonly string[]> =>
          (await inspectorOf(stage).list(filter)).map(({ id }) => id)
        assert.deepEqual(await ids({ limit: 10, state: 'completed' }), [done.id])
        assert.deepEqual(await ids({ limit: 10, state: 'in_progress' }), [running.id])
        assert.deepEqual(await ids({ limit: 10, state: 'queued' }), [foreign.id, waiting.id])
        assert.deepEqual(await ids({ limit: 10, type: a }), [waiting.id, running.id, done.id])
        assert.deepEqual(await ids({ limit: 10, type: b, state: 'completed' }), [])
      },
    },
    {
      name: 'the history tells a job’s life in order',
      guarantees: ['I1', 'I9'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume({ worker: 'host:1:a' })
        await stage.settle(consumer, await stage.one(consumer), release())
        await stage.settle(consumer, await stage.one(consumer), retry())
        await stage.settle(consumer, await stage.one(consumer), complete)
        const history = await inspectorOf(stage).history(id)
        const lived = history.map(({ name }) => name).filter((name) => name !== 'retried')
        assert.deepEqual(lived, ['enqueued', 'started', 'released', 'started', 'failed', 'started', 'completed'])
        const started = history.filter(({ name }) => name === 'started')
        assert.deepEqual(
          started.map(({ attempt, worker }) => [attempt, worker]),
          [
            [1, 'host:1:a'],
            [1, 'host:1:a'],
            [2, 'host:1:a'],
          ],
        )
        assert.ok(history.every(({ jobId, atMs }) => jobId === id && atMs <= stage.nowMs))
      },
    },
    {
      name: 'the history names how a job ended and who brought it back',
      guarantees: ['I9'],
      ...need(inspection, cancellation, deadLetters),
      async run(stage) {
        const buried = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        await stage.engine.deadLetters?.requeue([buried.id], by)
        assert.deepEqual((await names(stage, buried.id)).slice(-2), ['dead', 'replayed'])
        await stage.engine.controls?.cancel(buried.id, by)
        assert.equal((await names(stage, buried.id)).at(-1), 'cancelled')
      },
    },
    {
      name: 'waiting for a job ends as soon as another view completes it',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const rival = await stage.consume({ on: await stage.other() })
        const lease = await stage.one(rival)
        const waiting = inspectorOf(stage).waitFor(id, { waitMs: 60_000, signal: never })
        await stage.harness.advance(50)
        await stage.settle(rival, lease, complete)
        const view = await stage.within(2_000, waiting, 'the end of the wait')
        assert.deepEqual([view?.state, view?.result], ['completed', { done: true }])
      },
    },
    {
      name: 'waiting for a job ends when it dies, and when it is cancelled',
      guarantees: ['I1'],
      ...need(inspection, cancellation),
      async run(stage) {
        const consumer = await stage.consume()
        const wait = { waitMs: 60_000, signal: never }
        const buried = await stage.put()
        const dying = inspectorOf(stage).waitFor(buried.id, wait)
        await stage.settle(consumer, await stage.one(consumer), dead)
        assert.equal((await stage.within(2_000, dying, 'the end of the wait'))?.state, 'dead_letter')
        const ended = await stage.put()
        const cancelled = inspectorOf(stage).waitFor(ended.id, wait)
        await stage.engine.controls?.cancel(ended.id, by)
        assert.equal((await stage.within(2_000, cancelled, 'the end of the wait'))?.state, 'cancelled')
      },
    },
    {
      name: 'waiting for a job that has ended answers at once',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), complete)
        const view = await stage.promptly(
          inspectorOf(stage).waitFor(id, { waitMs: 60_000, signal: never }),
          'the answer',
        )
        assert.equal(view?.state, 'completed')
      },
    },
    {
      name: 'waiting in vain answers the present view at the time-out, and at once on abort',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const inVain = inspectorOf(stage).waitFor(id, { waitMs: 200, signal: never })
        assert.equal((await stage.within(1_000, inVain, 'the time-out'))?.state, 'queued')
        const abort = new AbortController()
        const aborted = inspectorOf(stage).waitFor(id, { waitMs: 60_000, signal: abort.signal })
        setImmediate(() => abort.abort())
        assert.equal((await stage.promptly(aborted, 'the end of an aborted wait'))?.state, 'queued')
      },
    },
  ],
}
