import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isMillraceError } from '../../src/errors.ts'
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

    test('what cannot be sent is refused, also when nobody wants the event', async () => {
      const refused = [
        [10n, {}, 'ERR_PAYLOAD_NOT_JSON'],
        ['x'.repeat(2_000_000), {}, 'ERR_PAYLOAD_TOO_LARGE'],
        [1, { headers: { 'x-a': 'two\nlines' } }, 'ERR_PAYLOAD_INVALID'],
      ] as const
      for (const events of [[], ['order.paid']] as const) {
        for (const event of events) await rig.add({ events: [event] })
        for (const [payload, options, code] of refused) {
          await assert.rejects(rig.webhooks.publish('order.paid', payload, options), (error) =>
            isMillraceError(error, code),
          )
        }
      }
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
