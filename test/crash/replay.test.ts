import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runReplayChaos } from '../chaos/replay.ts'
import { temporaryFolder } from '../cli/run.ts'

// B127 X034 X035
test('a replay of all letters that is interrupted and called again replays each once, beside a busy worker', async (t) => {
  const folder = await temporaryFolder(t)
  const report = await runReplayChaos({
    url: `sqlite:${folder}/replay.db`,
    letters: 4_000,
    busy: 60_000,
    aloneMs: 500,
    interruptAfter: 500,
    // All of them would take 16 s, so that it is still at work when a busy machine gets round to interrupting it.
    rateBefore: 250,
  })
  t.diagnostic(JSON.stringify({ ...report, violations: report.violations.length }))
  assert.deepEqual(report.violations, [])
})
