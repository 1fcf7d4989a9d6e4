import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { systemClock } from '../../src/time/clock.ts'
import { webhookReceiver } from '../../test/fixtures/webhook-receiver.ts'
import { WORKLOAD_PLACES } from '../../test/fixtures/workload-places.ts'
import { openWebhooks } from './index.ts'

// A107
test('twenty deliveries are under way at once, or as many as the options say', async () => {
  await using receiver = await webhookReceiver()
  const place = await WORKLOAD_PLACES[0].makePlace()
  for (const [settings, expected] of [
    [{}, 20],
    [{ concurrency: 3 }, 3],
    [{ concurrency: 30 }, 30],
  ] as const) {
    const open: ServerResponse[] = []
    let most = 0
    receiver.answer((response) => {
      open.push(response)
      most = Math.max(most, open.length)
      // Once as many as there may be are here, each answer lets the next one come.
      if (open.length >= expected) open.shift()?.end()
    })
    await using webhooks = await openWebhooks({
      engine: place.url,
      allow: [receiver.origin],
      limiter: null,
      ...settings,
    })
    const { id } = await webhooks.endpoints.add({ url: receiver.origin })
    const worker = await webhooks.work()
    const published = await Promise.all(Array.from({ length: 40 }, () => webhooks.publish('order.paid', {})))
    const jobs = published.flatMap(({ deliveries }) => deliveries.map(({ jobId }) => webhooks.mill.result(jobId)))
    while ((await webhooks.endpoints.show(id)).successCount < 40 - expected + 1) await systemClock.sleep(5)
    assert.equal(most, expected)
    receiver.answer((response) => void response.end())
    for (const response of open) response.end()
    await Promise.all(jobs)
    await worker.stop()
    await webhooks.endpoints.remove(id)
  }
  await place.remove()
})
