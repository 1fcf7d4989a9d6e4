import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runEmbeddingChaos } from '../chaos/workloads/embeddings.ts'
import { VECTOR_PLACES } from '../fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../servers/pgvector.ts'

for (const { name, makePlace } of VECTOR_PLACES) {
  // A02 X017 X050 X051
  test(`on ${name}, workers of embeddings that are killed between any two steps leave what one clean run leaves`, async (t) => {
    const seed = Number(process.env.CHAOS_SEED ?? 20_261_117)
    t.diagnostic(`seed ${seed}`)
    const place = await makePlace()
    if (place === null) return t.skip(PGVECTOR_MISSING)
    const report = await runEmbeddingChaos({ url: place.url, jobs: 20, kills: 6, seed, finishMs: 480_000 })
    t.diagnostic(JSON.stringify({ ...report, violations: report.violations.length }))
    assert.deepEqual(report.violations, [])
    assert.ok(report.kills > 0, 'nothing was killed, so nothing was shown')
    await place.remove()
  })
}
