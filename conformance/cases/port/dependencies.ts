import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { retentionOf } from '../../../src/engine/capability-checks.ts'
import type { CaseFile } from '../../case.ts'
import {
  atomicEnqueue,
  DELAY_MS,
  delay,
  dependencies,
  idempotentEnqueue,
  inspection,
  keys,
  need,
  retention,
  transactions,
} from '../../needs.ts'
import { complete, idsOf, rejection, retry } from '../../stage.ts'
import { after, settleJob } from '../../succession.ts'

const DONE = { kind: 'complete', result: '7', durationMs: 1 } as const

export const dependent: CaseFile = {
  level: 'port',
  concept: 'Dependencies',
  cases: [
    {
      // B04
      name: 'a job that comes after another is handed out when that one is completed, and tells whom it came after',
      guarantees: ['I1'],
      ...need(dependencies),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put({ ...after([first.id], 'run'), priority: 1 })
        const third = await stage.put({ ...after([second.id]), priority: 1 })
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.deepEqual([lease.job.id, lease.job.after], [first.id, null])
        await stage.none(consumer, 'a job was handed out before the one that comes first was done')
        await stage.settle(consumer, lease, complete)
        const next = await stage.one(consumer)
        assert.deepEqual([next.job.id, next.job.after], [second.id, { ids: [first.id], ifDead: 'run' }])
        await stage.none(consumer, 'the third was handed out before the second was done')
        await stage.settle(consumer, next, complete)
        await settleJob(stage, consumer, third.id, complete)
        await stage.expectCounts({ completed: 3 })
      },
    },
    {
      name: 'a job that comes after many waits for the last of them, also when they are settled in one call',
      guarantees: ['I1'],
      ...need(dependencies),
      async run(stage) {
        const jobs = stage.jobs(4)
        const last = stage.job(after(jobs.map(({ id }) => id)))
        await stage.engine.enqueue([...jobs, last])
        const consumer = await stage.consume()
        const leases = await stage.take(consumer, 10)
        assert.equal(leases.length, 4)
        const [one, ...others] = leases
        assert.ok(one)
        assert.deepEqual(await consumer.settle(others.map((lease) => ({ lease, outcome: complete }))), [])
        await stage.none(consumer, 'one of four was not done yet')
        await stage.expectCounts({ delayed: 1, inProgress: 1, completed: 3 })
        await stage.settle(consumer, one, complete)
        await settleJob(stage, consumer, last.id, complete)
      },
    },
    {
      name: 'all that come after one job are handed out when it is completed, to whichever consumer asks',
      guarantees: ['I1', 'I4'],
      ...need(dependencies),
      async run(stage) {
        const first = await stage.put()
        const others = stage.jobs(60, after([first.id]))
        await stage.engine.enqueue(others)
        const [here, there] = [await stage.consume(), await stage.consume({ on: await stage.other() })]
        const lease = await stage.one(here)
        await stage.none(there, 'another view handed out what has to wait')
        await stage.settle(here, lease, complete)
        const taken = [...(await stage.take(there, 40)), ...(await stage.take(here, 40))]
        assert.deepEqual([...idsOf(taken)].sort(), others.map(({ id }) => id).sort())
      },
    },
    {
      name: 'a waiting claim of another view is woken by the completion that lets a job go',
      guarantees: ['I11'],
      ...need(dependencies),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id]))
        const [here, there] = [await stage.consume(), await stage.consume({ on: await stage.other() })]
        const lease = await stage.one(here)
        const waiting = stage.take(there, 1, { waitMs: 60_000 })
        await stage.settle(here, lease, complete)
        assert.deepEqual(idsOf(await stage.within(2_000, waiting, 'the claim')), [second.id])
      },
    },
    {
      name: 'a job that comes after completed ones need not wait',
      guarantees: ['I1'],
      ...need(dependencies),
      async run(stage) {
        const first = await stage.put()
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, complete)
        const { id } = await stage.put(after([first.id]))
        await stage.expectCounts({ ready: 1, completed: 1 })
        await settleJob(stage, consumer, id, complete)
      },
    },
    {
      name: 'a job after one that nobody knows is refused, and nothing of its batch is stored',
      guarantees: ['I1', 'I10'],
      ...need(dependencies, atomicEnqueue),
      async run(stage) {
        const [known, unknown] = [stage.job(), stage.job()]
        const good = stage.job(after([known.id]))
        const bad = stage.job(after([known.id, unknown.id]))
        assert.equal(await rejection(stage.engine.enqueue([known, good, bad])), 'ERR_JOB_UNKNOWN')
        // Only what stands before it in the batch is known, so that no batch can hold a circle.
        const [one, two] = [stage.job(), stage.job()]
        const circle = [
          { ...one, ...after([two.id]) },
          { ...two, ...after([one.id]) },
        ]
        assert.equal(await rejection(stage.engine.enqueue(circle)), 'ERR_JOB_UNKNOWN')
        assert.equal(await rejection(stage.engine.enqueue([{ ...one, ...after([one.id]) }])), 'ERR_JOB_UNKNOWN')
        await stage.expectCounts({})
        await stage.none(await stage.consume(), 'a part of a refused batch was handed out')
        await stage.engine.enqueue([known, good])
        await stage.expectCounts({ ready: 1, delayed: 1 })
      },
    },
    {
      name: 'a refused batch leaves a transaction of the user’s own as it was',
      guarantees: ['I1'],
      ...need(dependencies, transactions),
      async run(stage) {
        const transaction = await stage.harness.transaction?.()
        assert.ok(transaction, 'the engine joins transactions, so its harness must offer one')
        const note = `note ${randomUUID()}`
        await transaction.note(note)
        const [first, last] = [stage.job(), stage.job()]
        const batch = [first, stage.job(after([last.id]))]
        assert.equal(await rejection(stage.engine.enqueue(batch, transaction.within)), 'ERR_JOB_UNKNOWN')
        await stage.engine.enqueue([last, stage.job(after([last.id]))], transaction.within)
        await transaction.commit()
        assert.ok((await transaction.notes()).includes(note), 'the user’s own row is gone')
        await stage.expectCounts({ ready: 1, delayed: 1 })
      },
    },
    {
      name: 'a first whose worker died holds the others back until it is recovered and completed',
      guarantees: ['I6'],
      ...need(dependencies),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id], 'run'))
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await stage.recover(lease)
        await stage.refused(consumer, lease, complete)
        const again = await stage.one(consumer)
        assert.equal(again.job.id, first.id)
        await stage.none(consumer, 'a recovered job is not done')
        await stage.settle(consumer, again, complete)
        await settleJob(stage, consumer, second.id, complete)
      },
    },
    {
      name: 'a job with a delay waits for both, whichever is later',
      guarantees: ['I11'],
      ...need(dependencies, delay),
      async run(stage) {
        const first = await stage.put()
        const early = await stage.put({ ...after([first.id]), delayMs: 1 })
        const late = await stage.put({ ...after([first.id]), delayMs: DELAY_MS })
        const consumer = await stage.consume()
        await stage.harness.advance(DELAY_MS / 4)
        const lease = await stage.one(consumer)
        await stage.none(consumer, 'due, but the first is not done')
        await stage.settle(consumer, lease, complete)
        await settleJob(stage, consumer, early.id, complete)
        await stage.none(consumer, 'the first is done, but it is not due')
        await stage.harness.advance(DELAY_MS)
        await settleJob(stage, consumer, late.id, complete)
      },
    },
    {
      name: 'a job that has to wait counts as delayed and shows whom it comes after',
      guarantees: ['I12'],
      ...need(dependencies, inspection),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id], 'die'))
        await stage.expectCounts({ ready: 1, delayed: 1 })
        const view = await stage.view(second.id)
        assert.deepEqual([view.state, view.after], ['queued', { ids: [first.id], ifDead: 'die' }])
        assert.equal((await stage.view(first.id)).after, null)
      },
    },
    {
      name: 'where the first turns out to be a duplicate, the others wait for the job that it duplicates',
      guarantees: ['I7'],
      ...need(dependencies, keys, inspection),
      async run(stage) {
        const known = await stage.put({ key: 'k' })
        const first = stage.job({ key: 'k' })
        const second = stage.job(after([first.id]))
        const receipts = await stage.engine.enqueue([first, second])
        assert.deepEqual(receipts[0], { id: known.id, status: 'duplicate' })
        assert.deepEqual((await stage.view(second.id)).after?.ids, [known.id])
        const consumer = await stage.consume()
        await settleJob(stage, consumer, known.id, complete)
        await settleJob(stage, consumer, second.id, complete)
      },
    },
    {
      name: 'a result that a later job may still ask for is kept, whatever retention says, until that job is done',
      guarantees: ['I1'],
      ...need(dependencies, retention, inspection),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id]))
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, { ...DONE, keep: 0 })
        await stage.harness.advance(10)
        const sweep = async () => {
          const rules = [{ what: 'completed', beforeMs: stage.nowMs + 1 }] as const
          return (await retentionOf(stage.engine).sweep(rules, { from: null, max: 100 })).removed
        }
        assert.equal(await sweep(), 0)
        const lease = await stage.one(consumer)
        assert.deepEqual((await stage.view(first.id)).result, 7)
        await stage.settle(consumer, lease, retry())
        assert.equal(await sweep(), 0, 'a job that is retried will ask again')
        await settleJob(stage, consumer, second.id, DONE)
        await stage.harness.advance(10)
        // An engine may have removed the first with the end of the second, because it was told to keep none.
        await sweep()
        const { inspector } = stage.engine
        const left = await inspector?.find([first.id, second.id])
        assert.deepEqual(left, [null, null])
      },
    },
    {
      name: 'a repeated enqueue of jobs that come after others changes nothing',
      guarantees: ['I1'],
      ...need(dependencies, idempotentEnqueue),
      async run(stage) {
        const first = stage.job()
        const batch = [first, stage.job(after([first.id]))]
        await stage.engine.enqueue(batch)
        const statuses = (await stage.engine.enqueue(batch)).map(({ status }) => status)
        assert.deepEqual(statuses, ['duplicate', 'duplicate'])
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, complete)
        await stage.expectCounts({ ready: 1, completed: 1 })
      },
    },
    {
      name: 'successors: those of a job are found while they wait, after they have finished, and until they are removed',
      guarantees: ['I1'],
      ...need(dependencies, inspection, retention),
      async run(stage) {
        const [first, other] = [await stage.put(), await stage.put()]
        const next = async (ids: readonly string[]) => (await stage.put({ after: { ids, ifDead: 'run' } })).id
        const [a, b] = [await next([first.id]), await next([first.id, other.id])]
        const c = await next([a])
        const after = async (...ids: readonly string[]) =>
          [...((await stage.engine.inspector?.successors(ids)) ?? [])].sort()
        const check = async (): Promise<void> => {
          assert.deepEqual(await after(first.id), [a, b].sort())
          assert.deepEqual(await after(other.id), [b])
          assert.deepEqual(await after(first.id, a), [a, b, c].sort())
          assert.deepEqual(await after(c), [])
          assert.deepEqual(await after('unknown'), [])
        }
        await check()
        const consumer = await stage.consume()
        for (let n = 0; n < 5; n += 1) await stage.settle(consumer, await stage.one(consumer), complete)
        await check()
        const rules = [{ what: 'completed', beforeMs: stage.nowMs + 60_000 }] as const
        await stage.engine.retention?.sweep(rules, { from: null, max: 100 })
        assert.deepEqual(await after(first.id, a), [])
      },
    },
  ],
}
