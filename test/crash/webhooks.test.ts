import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runWebhookChaos } from '../chaos/workloads/webhooks.ts'
import { WORKLOAD_PLACES } from '../fixtures/workload-places.ts'

describe('workers of webhooks that are killed', { concurrency: true }, () => {
  for (const { name, makePlace } of WORKLOAD_PLACES) {
    // A02
    test(`leave the same rows and stats as a run without kills, on ${name}`, async (t) => {
      const seed = Number(process.env.CHAOS_SEED ?? 20_261_117)
      t.diagnostic(`seed ${seed}`)
      const place = await makePlace()
      t.after(() => place.remove())
      const report = await runWebhookChaos({ url: place.url, jobs: 60, kills: 2, seed, finishMs: 240_000 })
      t.diagnostic(JSON.stringify(report))
      assert.deepEqual(report.violations, [])
      assert.equal(report.deliveries, 60)
    })
  }
})
