import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeOutboxes } from './upkeep.ts'

test('an outbox is judged by how long its first job has waited', () => {
  const judged = (oldestMs: number): string | undefined =>
    judgeOutboxes([{ name: 'kafka', jobs: 3, oldestMs }])[0]?.severity
  assert.deepEqual([60_000, 60_001, 3_600_000, 3_600_001].map(judged), ['ok', 'warning', 'warning', 'error'])
  assert.deepEqual(judgeOutboxes([]), [])
  const [late] = judgeOutboxes([{ name: 'kafka', jobs: 3, oldestMs: 180_000 }])
  assert.match(late?.detail ?? '', /^3 jobs in the outbox 'kafka', the first for 3 min: no process/)
})
