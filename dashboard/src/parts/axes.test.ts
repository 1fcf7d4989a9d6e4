import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COUNT_STEPS, countRange, DURATION_TICKS, durationRange, timeRange } from './axes.ts'

test('counts have whole steps of 1, 2 and 5, from one to billions', () => {
  for (const step of COUNT_STEPS) assert.match(String(step), /^[125]0*$/)
  assert.ok((COUNT_STEPS.at(-1) ?? 0) >= 1e12)
  assert.deepEqual(countRange(null, null, null), [0, 4])
  assert.deepEqual(countRange(null, null, 0.3), [0, 4])
  assert.equal(countRange(null, null, 100)[1] > 100, true)
})

test('durations from nothing to months have labels that people say', () => {
  const ticks = (low: number | null, high: number | null): string => {
    const [min, max] = durationRange(null, low, high)
    return DURATION_TICKS.values(null, DURATION_TICKS.splits(null, 0, min, max)).join(', ')
  }
  assert.equal(ticks(null, null), '1 ms, 10 ms, 100 ms')
  assert.equal(ticks(0.2, 0.4), '1 ms, 10 ms, 100 ms')
  assert.equal(ticks(40, 900), '10 ms, 100 ms, 1 s')
  assert.equal(ticks(3, 90_000_000), '1 ms, 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min, 1 h, 10 h, 1 d')
})

test('the axis of time has a minute at least', () => {
  assert.deepEqual(timeRange(null, 1_000, 1_900), [1_000, 1_900])
  assert.deepEqual(timeRange(null, 1_000, 1_000), [940, 1_000])
  const [start, end] = timeRange(null, null, null)
  assert.equal(end - start, 60)
})
