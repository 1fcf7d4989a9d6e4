import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runLeaks } from '../chaos/conversations/leaks.ts'

const SEED = 20_261_117

// B11 B15 B55 B195 X096
test(`secrets of twenty-four kinds pass through hook and pipeline, with kills, and none is found afterwards (seed ${SEED})`, async () => {
  const report = await runLeaks({ seed: SEED, perKind: 1, kills: 1, finishMs: 240_000 })
  assert.deepEqual(report.leaks, [])
  assert.equal(report.unfinished, 0, JSON.stringify(report))
  assert.deepEqual([report.kinds, report.workersKilled], [24, 1])
  assert.ok(report.messages >= report.prompts - report.hooksKilled, JSON.stringify(report))
  assert.ok(report.spooled > 0 && report.deadLetters > 0 && report.replayed > 0, JSON.stringify(report))
})
