import assert from 'node:assert/strict'
import type { Consumer } from '../../../src/engine/engine.ts'
import type { Lease, Outcome } from '../../../src/engine/outcome.ts'
import type { CaseFile } from '../../case.ts'
import { inspection, need, priority, RETRY_MS, retryDelay } from '../../needs.ts'
import { boom, complete, idsOf, release, retry, type Stage } from '../../stage.ts'

/** How long jobs may take to reach the next consumer; a busy machine takes longer. */
const HANDOVER_MS = 60_000
const MANY = 60

/** Many jobs come back at once, their consumer closes, and the next one gets them all, with this attempt. */
async function outlive(stage: Stage, outcome: Outcome, attempt: number): Promise<void> {
  const jobs = stage.jobs(MANY)
  await stage.engine.enqueue(jobs)
  // A lease that a slow machine cannot outlast: they are settled when all are claimed.
  const consumer = await stage.consume({ types: [{ type: stage.type, leaseMs: HANDOVER_MS * 2 }] })
  const settlements = (await takeAll(stage, consumer)).map((lease) => ({ lease, outcome }))
  assert.deepEqual(await consumer.settle(settlements), [])
  await consumer.close()
  const successor = await stage.consume()
  const again = await takeAll(stage, successor, complete)
  assert.deepEqual([...idsOf(again)].sort(), jobs.map(({ id }) => id).sort())
  assert.deepEqual([...new Set(again.map((lease) => lease.attempt))], [attempt])
  await stage.expectCounts({ completed: MANY })
}

/** Claims until there are sixty; with an outcome each is settled before the next claim. */
async function takeAll(stage: Stage, consumer: Consumer, outcome?: Outcome): Promise<readonly Lease[]> {
  const leases: Lease[] = []
  const isDone = async (): Promise<boolean> => {
    const taken = await stage.take(consumer, MANY - leases.length)
    leases.push(...taken)
    if (outcome !== undefined && taken.length > 0)
      assert.deepEqual(await consumer.settle(taken.map((lease) => ({ lease, outcome }))), [])
    return leases.length === MANY
  }
  await stage.until(HANDOVER_MS, isDone, `the claim of ${MANY} jobs`)
  return leases
}

export const retrying: CaseFile = {
  level: 'port',
  concept: 'Retry',
  cases: [
    {
      // B47 B121
      name: 'a retry waits its delay and is then claimable',
      guarantees: ['I1', 'I2'],
      ...need(retryDelay),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry(RETRY_MS))
        await stage.expectCounts({ delayed: 1 })
        await stage.none(consumer, 'a retry was handed out before its delay')
        await stage.harness.advance(RETRY_MS * 0.4)
        await stage.none(consumer, 'a retry was handed out before its delay')
        await stage.harness.advance(RETRY_MS * 0.6 + 1)
        const again = await stage.one(consumer)
        assert.deepEqual([again.job.id, again.attempt], [id, 2])
      },
    },
    {
      name: 'a retry without delay is claimable at once',
      guarantees: ['I1', 'I2'],
      async run(stage) {
        const { id } = await stage.put({ payload: '"same"', attempts: 4, tenant: { orgId: 'o' } })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        await stage.expectCounts({ ready: 1 })
        const { job } = await stage.one(consumer)
        assert.deepEqual([job.id, job.payload, job.attempts, job.tenant], [id, '"same"', 4, { orgId: 'o' }])
      },
    },
    {
      name: 'sixty jobs that wait for their retry outlive their consumer, and all of them run again',
      guarantees: ['I1', 'I2'],
      async run(stage) {
        await outlive(stage, retry(), 2)
      },
    },
    {
      name: 'sixty jobs that were released outlive their consumer, and all of them run again',
      guarantees: ['I1', 'I2'],
      async run(stage) {
        await outlive(stage, release(), 1)
      },
    },
    {
      // B31 B121 A03
      name: 'the error of a failed attempt is shown while the job waits',
      guarantees: ['I2'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        const view = await stage.view(id)
        assert.deepEqual([view.state, view.error], ['queued', boom])
        assert.deepEqual([view.leaseOwner, view.leaseUntilMs, view.startedAtMs], [null, null, null])
      },
    },
    {
      name: 'a retried job keeps its priority',
      guarantees: ['I2'],
      ...need(priority),
      async run(stage) {
        const urgent = await stage.put({ priority: 1 })
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        const ordinary = await stage.put()
        await stage.settle(consumer, lease, retry())
        assert.deepEqual(idsOf(await stage.take(consumer, 5)), [urgent.id, ordinary.id])
      },
    },
    {
      name: 'a job that failed and then succeeded is completed, not dead',
      guarantees: ['I1', 'I2'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        await stage.settle(consumer, await stage.one(consumer), complete)
        await stage.expectCounts({ completed: 1 })
      },
    },
  ],
}
