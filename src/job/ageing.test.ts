import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { OptionError } from '../errors.ts'
import { effectiveRank, parseAgeingMs } from './ageing.ts'

const MINUTE_MS = 60_000
const AGEING_MS = 10 * MINUTE_MS

// X119
test('a job gains one rank for each whole interval that it waited, down to 1', () => {
  const ranks = [0, AGEING_MS - 1, AGEING_MS, 2 * AGEING_MS - 1, 9 * AGEING_MS - 1, 9 * AGEING_MS, 1_000 * AGEING_MS]
  assert.deepEqual(
    ranks.map((waitedMs) => effectiveRank(10, waitedMs, AGEING_MS)),
    [10, 10, 9, 9, 2, 1, 1],
  )
  assert.equal(effectiveRank(1, 1_000 * AGEING_MS, AGEING_MS), 1)
})

// X119
test('without ageing, before its due time and with an unreadable one, a job keeps its priority', () => {
  assert.equal(effectiveRank(7, 1_000 * AGEING_MS, null), 7)
  assert.equal(effectiveRank(7, -1, AGEING_MS), 7)
  assert.equal(effectiveRank(7, Number.NaN, AGEING_MS), 7)
  assert.equal(effectiveRank(7, Number.POSITIVE_INFINITY, AGEING_MS), 1)
})

// X119
test('of two jobs of one priority the one that waited longer never counts as less, and none loses a rank', () => {
  const waited = fc.nat(200 * MINUTE_MS)
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 12 }), waited, waited, fc.integer({ min: 1 }), (priority, one, other, ms) => {
      const [short, long] = [Math.min(one, other), Math.max(one, other)]
      assert.ok(effectiveRank(priority, long, ms) <= effectiveRank(priority, short, ms))
      assert.ok(effectiveRank(priority, short, ms) <= priority)
      assert.ok(effectiveRank(priority, long, ms) >= Math.min(1, priority))
    }),
  )
})

// X119
test('the option is a duration of at least a millisecond, and off when it is left out', () => {
  assert.equal(parseAgeingMs(undefined), null)
  assert.equal(parseAgeingMs('10m'), AGEING_MS)
  assert.throws(() => parseAgeingMs(0), OptionError)
  assert.throws(() => parseAgeingMs(-1), OptionError)
})
