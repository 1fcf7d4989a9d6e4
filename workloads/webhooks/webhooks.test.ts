import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openDesk } from '../../src/desk/desk.ts'
import { status } from '../../test/fixtures/webhook-receiver.ts'
import { storeRig } from '../../test/fixtures/webhooks.ts'
import { WORKLOAD_PLACES } from '../../test/fixtures/workload-places.ts'
import { DeadLetterManager } from '../framework/index.ts'
import { verifyWebhook, type WebhookEndpoint } from './index.ts'

const stats = ({ successCount, failureCount, avgLatencyMs }: WebhookEndpoint) => [
  ...[successCount, failureCount, avgLatencyMs],
]

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`deliveries on ${name}`, () => {
    const rig = storeRig(makePlace)

    // A118 A119 A120 X043
    test('a delivery is recorded with the start of its response, and the stats hold a running mean', async () => {
      const { id, secret } = await rig.add()
      rig.receiver.answer((response) => {
        response.end('z'.repeat(5_000))
      })
      const { deliveries } = await rig.webhooks.publish('order.paid', { total: 7 })
      await rig.runDue()
      const [delivery = assert.fail('nothing was recorded')] = await rig.webhooks.deliveries()
      const { responseBody, latencyMs, at, ...rest } = delivery
      const [published] = deliveries
      assert.deepEqual(rest, {
        ...{ deliveryId: published?.deliveryId, jobId: published?.jobId, webhookId: id, event: 'order.paid' },
        ...{ attempt: 1, status: 'success', statusCode: 200, errorMessage: null, isFinal: false },
      })
      assert.equal(responseBody, 'z'.repeat(1_000))
      assert.equal(at.getTime(), rig.clock.nowMs())
      const [request] = rig.receiver.requests
      assert.ok(request)
      const payload = await verifyWebhook(request, secret, { clock: rig.clock })
      assert.deepEqual(payload, { type: 'order.paid', timestamp: at.toISOString(), data: { total: 7 } })
      const shown = await rig.webhooks.endpoints.show(id)
      assert.deepEqual(shown.lastDeliveredAt, new Date(rig.clock.nowMs()))
      assert.deepEqual(stats(shown), [1, 0, latencyMs])
      const record = { webhookId: id, status: 'success', statusCode: 200 } as const
      await Promise.all([
        rig.webhooks.repository.recordOutcome({ ...record, jobId: 'a', latencyMs: 30 }),
        rig.webhooks.repository.recordOutcome({ ...record, jobId: 'b', latencyMs: 60 }),
        rig.webhooks.repository.recordOutcome({ ...record, jobId: 'b', latencyMs: 60 }),
      ])
      await rig.webhooks.repository.recordOutcome({ ...record, jobId: 'a', latencyMs: 30 })
      assert.deepEqual(stats(await rig.webhooks.endpoints.show(id)), [3, 0, (latencyMs + 90) / 3])
    })

    // A127 X043
    test('the methods of the port work one by one', async () => {
      const { id } = await rig.add()
      const { repository } = rig.webhooks
      const record = { webhookId: id, jobId: 'j', status: 'failed', latencyMs: 5, isFinal: true } as const
      await repository.recordDelivery(record)
      await repository.recordDelivery(record)
      assert.equal((await rig.webhooks.deliveries()).length, 1)
      assert.deepEqual(stats(await rig.webhooks.endpoints.show(id)), [0, 0, 0])
      await repository.updateStats(id, { failureCount: { increment: 1 } })
      const lastDeliveredAt = new Date(rig.clock.nowMs())
      for (const avgLatencyMs of [10, 20, 60]) {
        await repository.updateStats(id, { lastDeliveredAt, successCount: { increment: 1 }, avgLatencyMs })
      }
      const shown = await rig.webhooks.endpoints.show(id)
      assert.deepEqual(stats(shown), [3, 1, 30])
      assert.deepEqual(shown.lastDeliveredAt, lastDeliveredAt)
      assert.equal(await repository.countRecentFailures(id, 86_400_000), 1)
      assert.equal(await repository.disable(id, 'why'), true)
      assert.equal(await repository.disable(id, 'again'), false)
      assert.equal((await repository.findById(id))?.isEnabled, false)
      assert.equal(await repository.findById('unknown'), null)
    })

    // A121 A122 A123 A124 X042
    test('three deliveries that failed for good disable the endpoint; their retries alone do not', async () => {
      const { id } = await rig.add({ maxFailures: 3 })
      rig.receiver.answer(status(500))
      for (let failed = 1; failed <= 3; failed += 1) {
        await rig.webhooks.publish('order.paid', { failed })
        await rig.run()
        const { isEnabled, failureCount, disabledReason } = await rig.webhooks.endpoints.show(id)
        assert.deepEqual([isEnabled, failureCount], [failed < 3, failed * 10])
        assert.equal(disabledReason, failed < 3 ? null : 'max_failures_exceeded')
      }
      assert.equal(rig.receiver.requests.length, 30)
      assert.equal(rig.counted.filter((metric) => metric === 'worker.webhook-dispatch.webhook_disabled').length, 1)
      const records = await rig.webhooks.deliveries({ webhookId: id })
      assert.equal(records.filter(({ isFinal }) => isFinal).length, 3)
      assert.deepEqual(
        [...new Set(records.map(({ status, statusCode, errorMessage }) => [status, statusCode, errorMessage].join()))],
        [`failed,500,127.0.0.1:${rig.receiver.port} answered with status 500`],
      )
      // Enabled again, it starts anew; and failures older than a day do not count.
      await rig.webhooks.endpoints.enable(id)
      assert.equal(await rig.webhooks.repository.countRecentFailures(id, 86_400_000), 0)
    })

    // A117
    test('a receiver that hangs fails the attempt after 10 s', async () => {
      await rig.add()
      rig.receiver.answer(() => {})
      await rig.webhooks.publish('order.paid', 1)
      const drained = rig.runDue()
      while (rig.receiver.requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
      await rig.clock.advance(9_999)
      assert.deepEqual(await rig.webhooks.deliveries(), [])
      await rig.clock.advance(1)
      await drained
      const [delivery] = await rig.webhooks.deliveries()
      const { status: outcome, statusCode, latencyMs, errorMessage, isFinal } = delivery ?? assert.fail('no record')
      assert.deepEqual([outcome, statusCode, latencyMs, isFinal], ['failed', null, 10_000, false])
      assert.match(errorMessage ?? '', /did not answer within 10000 ms/)
      await rig.tables.write([{ sql: 'DELETE FROM {webhook_endpoints}' }])
      await rig.run(1)
    })

    // X042
    test('failures older than 24 hours are not counted', async () => {
      const { id } = await rig.add({ maxFailures: 2 })
      rig.receiver.answer(status(404))
      await rig.webhooks.publish('a', 1)
      await rig.runDue()
      await rig.clock.advance('25h')
      await rig.webhooks.publish('a', 2)
      await rig.runDue()
      assert.equal((await rig.webhooks.endpoints.show(id)).isEnabled, true)
      await rig.webhooks.publish('a', 3)
      await rig.runDue()
      assert.equal((await rig.webhooks.endpoints.show(id)).isEnabled, false)
    })

    // X041
    test('an endpoint disabled between attempts leaves a dead letter; a replay after enabling delivers', async () => {
      const { id } = await rig.add()
      rig.receiver.answer(status(503))
      const { deliveries } = await rig.webhooks.publish('order.paid', 1)
      const waiting = await rig.webhooks.publish('order.sent', 2)
      await rig.runDue()
      await rig.webhooks.endpoints.disable(id, 'maintenance')
      const late = await rig.webhooks.mill.enqueue(rig.webhooks.worker.definition, { webhookId: id, payload: 1 })
      await rig.run(3)
      const [first] = deliveries
      assert.ok(first)
      const dead = await rig.webhooks.mill.job(first.jobId)
      assert.equal(dead?.state, 'dead_letter')
      assert.match(dead?.error?.message ?? '', /webhook_disabled: .* is disabled \(maintenance\)/)
      assert.deepEqual((await rig.webhooks.mill.job(late.id))?.result, { success: false, reason: 'webhook_disabled' })
      assert.equal(rig.receiver.requests.length, 2)
      await rig.webhooks.endpoints.enable(id)
      rig.receiver.answer(status(200))
      const desk = openDesk(rig.webhooks.mill, { jobs: rig.webhooks.jobs, clock: rig.clock })
      await desk.replay(first.jobId, { who: 'test', reason: 'enabled again' })
      await rig.run(1)
      const all = await rig.webhooks.deliveries({ deliveryId: first.deliveryId })
      // The attempt begins at 1 again, and the row of the first one stays.
      assert.deepEqual(all.map(({ status, attempt }) => `${status} ${attempt}`).sort(), ['failed 1', 'success 1'])
      assert.equal(rig.receiver.requests.at(-1)?.headers['x-delivery-id'], first.deliveryId)
      assert.equal(waiting.deliveries.length, 1)
    })

    // A02
    test('a job that is run again after its success was recorded sends nothing and changes no row', async () => {
      const { id } = await rig.add()
      const { deliveries } = await rig.webhooks.publish('order.paid', 1)
      await rig.runDue()
      const before = [await rig.webhooks.deliveries(), await rig.webhooks.endpoints.show(id)]
      const [first] = deliveries
      assert.ok(first)
      const job = { id: first.jobId, attempt: 2, attempts: 10, token: 'other', signal: new AbortController().signal }
      const data = { webhookId: id, payload: 1, deliveryId: first.deliveryId, event: 'order.paid' }
      const result = await rig.webhooks.worker.process(data, Object(job))
      assert.equal(result.success, true)
      assert.equal(rig.receiver.requests.length, 1)
      assert.deepEqual([await rig.webhooks.deliveries(), await rig.webhooks.endpoints.show(id)], before)
    })

    // X047
    test('a dead letter that is retried as another job keeps the delivery id', async () => {
      await rig.add()
      rig.receiver.answer(status(410))
      const { deliveries } = await rig.webhooks.publish('order.paid', 1)
      await rig.runDue()
      rig.receiver.answer(status(200))
      const manager = new DeadLetterManager(rig.webhooks.mill)
      const entry = (await manager.find({ limit: 1_000 })).find((one) => one.originalJobId === deliveries[0]?.jobId)
      assert.ok(entry)
      const retried = await manager.retry(entry.id)
      await rig.runDue()
      assert.notEqual(retried.id, deliveries[0]?.jobId)
      assert.deepEqual(
        rig.receiver.requests.map(({ headers }) => headers['x-delivery-id']),
        [deliveries[0]?.deliveryId, deliveries[0]?.deliveryId],
      )
    })

    // X044
    test('when the table is gone after a 200, the job completes and nothing is sent again', async () => {
      await rig.add()
      await rig.webhooks.publish('order.paid', 1)
      rig.receiver.answer((response) => {
        void rig.tables
          .write([{ sql: 'ALTER TABLE {webhook_deliveries} RENAME TO webhook_hidden' }])
          .then(() => response.end())
      })
      assert.equal((await rig.runDue()).complete, 1)
      await rig.tables.write([{ sql: 'ALTER TABLE {webhook_hidden} RENAME TO webhook_deliveries' }])
      await rig.run(2)
      assert.equal(rig.receiver.requests.length, 1)
      assert.equal(rig.counted.filter((metric) => metric.endsWith('bookkeeping_failed')).length, 1)
    })
  })
}
