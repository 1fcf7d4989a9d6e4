import assert from 'node:assert/strict'
import { test } from 'node:test'
import { summaryOf } from '../chaos/kill.ts'
import { runFailoverChaos } from '../chaos/postgres-failover.ts'

// I1 I3 I5 I6
test('a synchronous standby that is promoted under load has every job and every completion', async (t) => {
  const seed = Number(process.env.CHAOS_SEED ?? 20_261_117)
  t.diagnostic(`seed ${seed}`)
  const report = await runFailoverChaos('synchronous', {
    ...{ jobs: 1_200, trickle: 400, jobMsMax: 300, processes: 3 },
    ...{ chaosMs: 6_000, finishMs: 240_000 },
    seed,
  })
  t.diagnostic(JSON.stringify(summaryOf(report)))
  assert.deepEqual(report.violations, [])
  assert.equal(report.completed + report.dead, report.acknowledged.size)
  assert.ok(report.acknowledged.size + report.unacknowledged === 1_200)
  assert.ok(report.promotedMs > 0 && report.rerun > 0, 'nothing was interrupted, so nothing was shown')
})
