import assert from 'node:assert/strict'
import { test } from 'node:test'
import { calculateBackoff } from './backoff.ts'

// B119 B120
test('calculateBackoff doubles from 2 s to 60 s with up to a second more', () => {
  const spans = [1, 2, 3, 6, 10].map((attempts) => [
    calculateBackoff(attempts, () => 0),
    calculateBackoff(attempts, () => 1),
  ])
  assert.deepEqual(spans, [
    [2_000, 3_000],
    [4_000, 5_000],
    [8_000, 9_000],
    [60_000, 61_000],
    [60_000, 61_000],
  ])
})
