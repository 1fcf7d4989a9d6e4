import assert from 'node:assert/strict'
import { test } from 'node:test'
import { summaryOf } from '../chaos/kill.ts'
import { runServerChaos } from '../chaos/postgres.ts'

const JOBS = 1_500

// I1 I3 I5 I6
test('no job is lost and no late settle accepted while worker processes are killed and the server is restarted', async (t) => {
  const seed = Number(process.env.CHAOS_SEED ?? 20_261_115)
  t.diagnostic(`seed ${seed}`)
  const report = await runServerChaos({
    jobs: JOBS,
    jobMsMax: 500,
    processes: 3,
    chaosMs: 9_000,
    finishMs: 240_000,
    seed,
  })
  t.diagnostic(JSON.stringify(summaryOf(report)))
  assert.deepEqual(report.violations, [])
  assert.equal(report.completed + report.dead, JOBS)
  assert.equal(report.disasters, 3)
  assert.ok(report.kills > 0 && report.rerun > 0, 'nothing was interrupted, so nothing was shown')
})
