import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillraceError } from '../../src/errors.ts'
import { type RetentionPolicy, retainOnce } from '../../src/keeper/retention.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../../test/fixtures/new-job.ts'
import { storeRig } from '../../test/fixtures/webhooks.ts'
import { WORKLOAD_PLACES } from '../../test/fixtures/workload-places.ts'

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`redelivery on ${name}`, () => {
    const rig = storeRig(makePlace)

    /** As a keeper in the worker's process does it, with a clock whose pauses pass by themselves. */
    const removeOldJobs = (policy: RetentionPolicy = {}) => {
      const { mill, jobs } = rig.webhooks
      const clock = { ...systemClock, nowMs: () => rig.clock.nowMs() }
      const definitions = new Map(jobs.map((job) => [job.type, job]))
      return retainOnce({ engine: mill.engine, events: mill.events, clock, definitions }, policy)
    }
    const delivered = async (): Promise<string> => {
      await rig.add()
      const { deliveries } = await rig.webhooks.publish('order.paid', { order: 1 })
      await rig.runDue()
      return deliveries[0]?.deliveryId ?? assert.fail('nothing was published')
    }

    test('a delivery can be repeated for as long as its record is kept', async () => {
      const deliveryId = await delivered()
      await rig.clock.advance('29d')
      await removeOldJobs()
      await rig.webhooks.retain()
      assert.equal((await rig.webhooks.deliveries({ deliveryId })).length, 1)
      await rig.webhooks.redeliver(deliveryId)
      await rig.runDue()
      assert.deepEqual(
        rig.receiver.requests.map(({ headers }) => headers['webhook-id']),
        [deliveryId, deliveryId],
      )
    })

    test('a delivery whose job was removed says so, and what to do', async () => {
      const deliveryId = await delivered()
      await rig.clock.advance('2d')
      await removeOldJobs({ types: { 'webhook-dispatch': { completed: '1d' } } })
      await assert.rejects(rig.webhooks.redeliver(deliveryId), (error) => {
        assert.ok(isMillraceError(error, 'ERR_RECORD_UNKNOWN'))
        assert.match(error.message, /was removed, and its payload with it; publish the event again/)
        return true
      })
    })

    test('a job that is no webhook is refused, whatever its payload is', async () => {
      const { mill, endpoints } = rig.webhooks
      await rig.add()
      const [webhook] = await endpoints.list()
      const payload = { webhookId: webhook?.id ?? assert.fail(), payload: { order: 1 } }
      const other = newJob({ type: 'other', payload: JSON.stringify(payload) })
      const foreign = newJob({ type: 'webhook-dispatch', payload: '"not a delivery"' })
      const unreadable = newJob({ type: 'webhook-dispatch', payload: 'not JSON' })
      const jobs = [other, foreign, unreadable]
      await mill.engine.enqueue(jobs)
      for (const { id } of jobs) {
        await assert.rejects(rig.webhooks.redeliver(id), { code: 'ERR_PAYLOAD_INVALID', message: /is not a webhook/ })
      }
      await rig.runDue()
      assert.deepEqual(rig.receiver.requests, [])
    })
  })
}
