import assert from 'node:assert/strict'
import type { Handler } from '../../../src/job/definition.ts'
import type { Predecessor } from '../../../src/job/predecessors.ts'
import { acrossTypes } from '../../across-types.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { cancellation, deadLetters, dependencies, keys, need, transactions } from '../../needs.ts'
import { gate, rejection } from '../../stage.ts'

const by = { who: 'suite', reason: 'test' }

/** What a handler was told of the jobs before it. */
const told = (after: readonly Predecessor[]): readonly unknown[] => after.map(({ state, result }) => [state, result])

export const flows: CaseFile = {
  level: 'client',
  concept: 'Dependencies and flows through the client',
  cases: [
    {
      // B04 X092
      name: 'handlers of each conversation start in the order of its chain, also those that a handler adds after itself',
      guarantees: ['I1'],
      ...need(dependencies, keys, acrossTypes),
      async run(stage) {
        const mill = await stage.mill()
        const started: string[] = []
        const step = (name: string, run: Handler<{ readonly n: number }, unknown>) =>
          numberedJob(
            stage,
            {
              run: (context) => {
                started.push(`${context.payload.n % 10} ${name}`)
                return run(context)
              },
            },
            `${stage.type}.${name}`,
          )
        const mine = step('mine', ({ after }) => told(after))
        const sanitize = step('sanitize', ({ payload }) => `text ${payload.n}`)
        const extract = step('extract', async ({ payload, after, job }) => {
          // One for each learning: they wait until this very job is completed, and a second start adds none.
          const learnings = [10, 20].map((more) => payload.n + more)
          for (const n of learnings) await mill.enqueue(mine, { n }, { after: job.id, key: `${job.id} ${n}` })
          return [after[0]?.result, learnings]
        })
        const seen = record(mill)
        await mill.work([mine, extract, sanitize], { concurrency: 5 })
        for (const n of [1, 2, 3]) {
          const text = await mill.enqueue(sanitize, { n }, { priority: 9 })
          await mill.enqueue(extract, { n }, { after: text, priority: 1 })
        }
        await stage.until(SOON_MS, () => seen.settled.length === 12, 'the end of all')
        for (const n of [1, 2, 3]) {
          const own = started.filter((line) => line.startsWith(`${n} `)).map((line) => line.slice(2))
          assert.deepEqual(own, ['sanitize', 'extract', 'mine', 'mine'])
        }
        const mined = (await mill.jobs({ type: mine.type })).find(({ payload }) => payload === '{"n":23}')
        assert.deepEqual(mined?.result, [['completed', ['text 3', [13, 23]]]])
      },
    },
    {
      name: 'a flow fans out and in, whatever the order of its steps',
      guarantees: ['I1'],
      ...need(dependencies, acrossTypes),
      async run(stage) {
        const mill = await stage.mill()
        const part = numberedJob(stage, { run: ({ payload }) => payload.n * 10 })
        const seen: unknown[] = []
        const whole = numberedJob(stage, { run: ({ after }) => seen.push(...told(after)) }, `${stage.type}.whole`)
        const flow = await mill.enqueueFlow({
          merge: { job: whole, payload: { n: 0 }, after: ['left', 'right', 'start'] },
          left: { job: part, payload: { n: 1 }, after: 'start' },
          right: { job: part, payload: { n: 2 }, after: 'start', priority: 1 },
          start: { job: part, payload: { n: 3 } },
        })
        assert.deepEqual(Object.keys(flow), ['merge', 'left', 'right', 'start'])
        await stage.expectCounts({ ready: 1, delayed: 2 })
        await mill.work([part, whole])
        await stage.within(SOON_MS, mill.result(flow.merge), 'the end of the flow')
        assert.deepEqual(seen, [
          ['completed', 10],
          ['completed', 20],
          ['completed', 30],
        ])
      },
    },
    {
      name: 'a flow with a circle, with a name that no step has, or with one bad payload stores nothing',
      guarantees: ['I1', 'I10'],
      ...need(dependencies),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage)
        const payload = { n: 1 }
        const circle = {
          start: { job, payload },
          a: { job, payload, after: ['start', 'c'] },
          b: { job, payload, after: 'a' },
          c: { job, payload, after: 'b' },
        } as const
        await assert.rejects(mill.enqueueFlow(circle), /'a' after 'c' after 'b' after 'a'/)
        assert.equal(await rejection(mill.enqueueFlow({ a: { job, payload, after: 'a' } })), 'ERR_OPTION_INVALID')
        const misnamed: Record<string, { job: typeof job; payload: typeof payload; after: string }> = {
          a: { job, payload, after: 'toString' },
        }
        assert.equal(await rejection(mill.enqueueFlow(misnamed)), 'ERR_OPTION_INVALID')
        const bad: Record<string, { job: string | typeof job; payload: { n: number } }> = {
          a: { job, payload },
          b: { job: stage.type, payload },
        }
        assert.equal(await rejection(mill.enqueueFlow(bad)), 'ERR_TYPE_UNKNOWN')
        await stage.expectCounts({})
      },
    },
    {
      name: 'a flow within a transaction is there after the commit, and never after a rollback',
      guarantees: ['I1'],
      ...need(dependencies, transactions),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage)
        for (const commits of [false, true]) {
          const transaction = await stage.harness.transaction?.()
          assert.ok(transaction, 'the engine joins transactions, so its harness must offer one')
          const flow = { a: { job, payload: { n: 1 } }, b: { job, payload: { n: 2 }, after: 'a' } } as const
          await mill.enqueueFlow(flow, { within: transaction.within })
          await (commits ? transaction.commit() : transaction.rollback())
          await stage.expectCounts(commits ? { ready: 1, delayed: 1 } : {})
        }
      },
    },
    {
      name: 'a death takes those with it that die with it, over three levels, and each says because of whom',
      guarantees: ['I9'],
      ...need(dependencies),
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const job = numberedJob(stage, {
          attempts: 1,
          run: ({ payload }) => {
            ran.push(payload.n)
            throw new Error('boom')
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const flow = await mill.enqueueFlow({
          a: { job, payload: { n: 1 } },
          b: { job, payload: { n: 2 }, after: 'a', ifDead: 'die', attempts: 3 },
          c: { job, payload: { n: 3 }, after: 'b', ifDead: 'die', attempts: 3 },
        })
        await stage.until(SOON_MS, () => seen.settled.length === 3, 'three deaths')
        assert.deepEqual(ran, [1])
        for (const [later, earlier] of [
          [flow.b, flow.a],
          [flow.c, flow.b],
        ] as const) {
          const view = await mill.job(later.id)
          assert.deepEqual([view?.state, view?.error?.code], ['dead_letter', 'ERR_PREDECESSOR_DEAD'])
          assert.ok(view?.error?.message.includes(earlier.id), view?.error?.message)
        }
      },
    },
    {
      name: 'a job that runs all the same is told which of those before it is dead, and why',
      guarantees: ['I9'],
      ...need(dependencies, acrossTypes),
      async run(stage) {
        const mill = await stage.mill()
        const sure = numberedJob(stage, { run: () => 'fine' })
        const fails = numberedJob(
          stage,
          {
            attempts: 1,
            run: () => {
              throw new Error('boom')
            },
          },
          `${stage.type}.fails`,
        )
        const merge = numberedJob(
          stage,
          {
            run: ({ after }) =>
              after.map(({ id, state, result, error }) => [id, state, result, error?.message ?? null]),
          },
          `${stage.type}.merge`,
        )
        await mill.work([sure, fails, merge])
        const flow = await mill.enqueueFlow({
          a: { job: sure, payload: { n: 1 } },
          b: { job: fails, payload: { n: 2 } },
          c: { job: merge, payload: { n: 3 }, after: ['a', 'b'], ifDead: 'run' },
        })
        assert.deepEqual(await stage.within(SOON_MS, mill.result(flow.c), 'the result'), [
          [flow.a.id, 'completed', 'fine', null],
          [flow.b.id, 'dead', null, 'boom'],
        ])
      },
    },
    {
      name: 'a job that waits for a dead one resumes when that is replayed and completes',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const mill = await stage.mill()
        let isBroken = true
        const job = numberedJob(stage, {
          attempts: 1,
          run: ({ payload, after }) => {
            if (isBroken) throw new Error('boom')
            return [...after.flatMap(({ result }) => result), payload.n]
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const flow = await mill.enqueueFlow({
          a: { job, payload: { n: 1 } },
          b: { job, payload: { n: 2 }, after: 'a' },
        })
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the death')
        await stage.harness.advance(200)
        await stage.expectCounts({ delayed: 1, dead: 1 })
        isBroken = false
        assert.deepEqual(await stage.engine.deadLetters?.requeue([flow.a.id], by), [true])
        assert.deepEqual(await stage.within(SOON_MS, mill.result(flow.b), 'the result'), [1, 2])
      },
    },
    {
      name: 'a job whose first was cancelled dies unless it is to run all the same',
      guarantees: ['I1'],
      ...need(dependencies, cancellation, acrossTypes),
      async run(stage) {
        const mill = await stage.mill()
        const hold = gate()
        const first = numberedJob(stage, { run: () => hold.opened })
        const later = numberedJob(stage, { run: ({ after }) => told(after) }, `${stage.type}.later`)
        await mill.work([first, later])
        const receipt = await mill.enqueue(first, { n: 1 })
        const [wait, run] = [
          await mill.enqueue(later, { n: 2 }, { after: receipt }),
          await mill.enqueue(later, { n: 3 }, { after: receipt, ifDead: 'run' }),
        ]
        await mill.cancel(receipt.id)
        hold.open()
        assert.deepEqual(await stage.within(SOON_MS, mill.result(run), 'the result'), [['cancelled', null]])
        assert.equal(await stage.within(SOON_MS, rejection(mill.result(wait)), 'the death'), 'ERR_JOB_DEAD')
        assert.equal((await mill.job(wait.id))?.error?.code, 'ERR_PREDECESSOR_DEAD')
      },
    },
    {
      name: 'a step whose key is taken is the job that has the key, and the rest of the flow comes after that',
      guarantees: ['I7'],
      ...need(dependencies, keys),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, {
          run: ({ payload, after }) => [...after.flatMap((one) => one.result), payload.n],
        })
        const known = await mill.enqueue(job, { n: 1 }, { key: 'k' })
        const flow = await mill.enqueueFlow({
          a: { job, payload: { n: 2 }, key: 'k' },
          b: { job, payload: { n: 3 }, after: 'a' },
        })
        assert.deepEqual([flow.a.status, flow.a.id], ['duplicate', known.id])
        await mill.work([job])
        assert.deepEqual(await stage.within(SOON_MS, mill.result(flow.b), 'the result'), [1, 3])
      },
    },
  ],
}
