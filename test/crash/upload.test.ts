import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runUploadChaos } from '../chaos/upload.ts'
import { anvilMissing } from '../servers/anvil.ts'

// B79 X099 X100
test('a worker killed at each step of an upload leaves one record on the chain and one confirmed row', {
  skip: anvilMissing,
}, async (t) => {
  const seed = Number(process.env.CHAOS_SEED ?? 20_261_117)
  t.diagnostic(`seed ${seed}`)
  const report = await runUploadChaos({ randomKills: 0, seed, finishMs: 60_000 })
  t.diagnostic(JSON.stringify(report))
  assert.deepEqual(report.violations, [])
  assert.equal(report.learnings, 8)
})
