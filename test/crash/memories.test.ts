import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runMemoryChaos } from '../chaos/workloads/memories.ts'
import { VECTOR_PLACES } from '../fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../servers/pgvector.ts'

describe('workers of memories that are killed', { concurrency: true }, () => {
  for (const { name, makePlace } of VECTOR_PLACES) {
    // A02 X053
    test(`leave the memories, merges, importances and vectors of a run without kills, on ${name}`, async (t) => {
      const seed = Number(process.env.CHAOS_SEED ?? 20_261_117)
      t.diagnostic(`seed ${seed}`)
      const [place, clean] = [await makePlace(), await makePlace()]
      if (place === null || clean === null) return t.skip(PGVECTOR_MISSING)
      t.after(() => Promise.all([place.remove(), clean.remove()]))
      const places = { url: place.url, cleanUrl: clean.url }
      const report = await runMemoryChaos({ ...places, users: 12, processes: 1, kills: 1, seed, finishMs: 240_000 })
      t.diagnostic(JSON.stringify(report))
      assert.deepEqual(report.violations, [])
      // Of each user: three and two memories that were merged, and two syntheses; the one without importance is gone.
      assert.deepEqual([report.jobs, report.memories, report.merges, report.vectors], [31, 84, 60, 84])
      assert.ok(report.kills >= 2, `${report.kills}: the two phases with steps are always struck`)
    })
  }
})
