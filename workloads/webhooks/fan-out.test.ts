import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { storeRig } from '../../test/fixtures/webhooks.ts'
import { WORKLOAD_PLACES } from '../../test/fixtures/workload-places.ts'

const ENDPOINTS = 600

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`an event for many endpoints on ${name}`, () => {
    const rig = storeRig(makePlace)
    const queued = async (): Promise<number> => (await rig.webhooks.mill.counts())['webhook-dispatch']?.ready ?? 0

    test('leaves the event loop free, and all deliveries appear at once', async () => {
      await Promise.all(Array.from({ length: ENDPOINTS }, () => rig.add()))
      let isDone = false
      const publishing = rig.webhooks.publish('order.paid', { order: 1 }).finally(() => {
        isDone = true
      })
      const seen = new Set<number>()
      let turns = 0
      while (!isDone) {
        await nextTurn()
        turns += 1
        seen.add(await queued())
      }
      const { deliveries } = await publishing
      seen.add(await queued())
      assert.equal(new Set(deliveries.map(({ webhookId }) => webhookId)).size, ENDPOINTS)
      assert.deepEqual([...seen], [0, ENDPOINTS])
      assert.ok(turns > 1, `${turns} turns`)
    })

    test('a key keeps them from being published twice', async () => {
      await Promise.all(Array.from({ length: ENDPOINTS }, () => rig.add()))
      const first = await rig.webhooks.publish('order.sent', {}, { key: 'order-1' })
      const again = await rig.webhooks.publish('order.sent', {}, { key: 'order-1' })
      assert.deepEqual([first.isDuplicate, again.isDuplicate], [false, true])
      assert.deepEqual(again.deliveries, first.deliveries)
    })
  })
}
