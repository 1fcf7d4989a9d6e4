import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { runKillChaos, summaryOf } from '../chaos/kill.ts'

// A01 A13 B02 B03 B85 B92 B139 B140 B165 B166 B193 X079 X080
test('no job is lost, run too often or completed by a late holder while processes are killed and paused', async (t) => {
  const seed = Number(process.env.CHAOS_SEED ?? 20_261_115)
  t.diagnostic(`seed ${seed}`)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kill-'))
  try {
    const url = `sqlite:${join(folder, 'kill.db')}`
    const report = await runKillChaos({
      url,
      jobs: 2_500,
      jobMsMax: 400,
      processes: 5,
      chaosMs: 10_000,
      finishMs: 240_000,
      seed,
    })
    t.diagnostic(JSON.stringify(summaryOf(report)))
    assert.deepEqual(report.violations, [])
    assert.equal(report.completed + report.dead, 2_500)
    assert.ok(report.kills > 0 && report.rerun > 0, 'nothing was interrupted, so nothing was shown')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
