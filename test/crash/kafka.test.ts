import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runKafkaChaos } from '../chaos/kafka.ts'

// D33 X153
test('no record is lost, out of order or settled late while members come and go and the broker is killed', async (t) => {
  const seed = Number(process.env.CHAOS_SEED ?? 20_261_116)
  t.diagnostic(`seed ${seed}`)
  const report = await runKafkaChaos({
    ...{ records: 2_000, keys: 100, partitions: 6, processes: 3 },
    ...{ jobMsMax: 250, chaosMs: 12_000, finishMs: 240_000, strikeMs: 1_000 },
    restarts: ['kill'],
    seed,
  })
  t.diagnostic(
    JSON.stringify({ ...report, violations: report.violations.length, unprovoked: report.unprovoked.length }),
  )
  assert.deepEqual(report.violations, [])
  assert.ok(report.completed >= 2_000)
  assert.ok(report.kills + report.pauses > 0 && report.awayMs.length === 1, 'nothing was struck, so nothing was shown')
})
