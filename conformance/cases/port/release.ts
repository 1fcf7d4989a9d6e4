import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { arrivalOrder, looking, need, RETRY_MS, retryDelay } from '../../needs.ts'
import { sharing } from '../../partitions.ts'
import { idsOf, release } from '../../stage.ts'

export const releasing: CaseFile = {
  level: 'port',
  concept: 'Release',
  cases: [
    {
      // B133
      name: 'a released job is claimable at once by anyone',
      guarantees: ['I1', 'I2'],
      ...need(sharing),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), release())
        await stage.expectCounts({ ready: 1 })
        const rival = await stage.consume({ on: await stage.other() })
        const lease = await stage.one(rival)
        assert.deepEqual([lease.job.id, lease.attempt], [id, 1])
      },
    },
    {
      name: 'a release with a delay defers the job by it',
      guarantees: ['I2'],
      ...need(retryDelay),
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), release(RETRY_MS))
        await stage.expectCounts({ delayed: 1 })
        await stage.harness.advance(RETRY_MS * 0.4)
        await stage.none(consumer, 'a deferred job was handed out too early')
        await stage.harness.advance(RETRY_MS * 0.6 + 1)
        assert.equal((await stage.one(consumer)).attempt, 1)
      },
    },
    {
      // B133
      name: 'a released job has no holder and no error',
      guarantees: ['I2'],
      ...need(looking),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), release())
        const view = await stage.view(id)
        assert.deepEqual([view.state, view.leaseOwner, view.leaseUntilMs, view.error], ['queued', null, null, null])
      },
    },
    {
      name: 'a job released without delay does not fall behind those that arrived after it',
      guarantees: ['I2'],
      ...need(arrivalOrder),
      async run(stage) {
        const early = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await stage.harness.advance(10)
        await stage.settle(consumer, lease, release())
        await stage.harness.advance(10)
        const late = await stage.put()
        assert.deepEqual(idsOf(await stage.take(consumer, 5)), [early.id, late.id])
      },
    },
  ],
}
