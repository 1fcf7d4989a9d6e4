import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Histogram } from './histogram.ts'

// B148 B149 X084
test('percentiles are by nearest rank, and null without values', () => {
  const histogram = new Histogram()
  assert.equal(histogram.percentile(0.5), null)
  for (let ms = 100; ms >= 1; ms -= 1) histogram.add(ms)
  assert.deepEqual(
    [0.5, 0.95, 0.99].map((share) => histogram.percentile(share)),
    [50, 95, 99],
  )
  const few = new Histogram()
  for (const ms of [30, 10, 20]) few.add(ms)
  assert.deepEqual([few.percentile(0.5), few.percentile(0.95)], [20, 30])
})

test('long durations are rounded up, so that none passes a limit unseen', () => {
  for (const ms of [999, 1_000, 10_000, 10_001, 29_999, 3_599_999]) {
    const histogram = new Histogram()
    histogram.add(ms)
    const shown = histogram.percentile(0.95)
    assert.ok(shown !== null && shown >= ms && shown < ms * 1.01, `${ms} is shown as ${shown}`)
  }
  const limit = new Histogram()
  limit.add(10_000)
  assert.equal(limit.percentile(0.5), 10_000)
})

test('with a finer unit short durations are told apart, and long ones stay within 1 %', () => {
  for (let ms = 1; ms < 5 * 3_600_000; ms *= 1.01) {
    const histogram = new Histogram(0.01)
    histogram.add(ms)
    const shown = histogram.percentile(0.5) ?? Number.NaN
    assert.ok(Math.abs(shown - ms) / ms <= 0.01, `${ms} is shown as ${shown}`)
  }
})

test('a cleared histogram is empty', () => {
  const histogram = new Histogram()
  histogram.add(5)
  histogram.clear()
  assert.deepEqual([histogram.total, histogram.percentile(0.5)], [0, null])
})

test('histograms add up', () => {
  const sum = new Histogram()
  const more = new Histogram()
  sum.add(1)
  more.add(3)
  more.add(2_345)
  sum.addAll(more)
  assert.deepEqual([sum.total, sum.percentile(0.5), sum.percentile(1)], [3, 3, 2_350])
})
