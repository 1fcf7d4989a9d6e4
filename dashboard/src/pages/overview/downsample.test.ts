import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryPoint } from '../../api/shapes.ts'
import { downsample, isGap, withGaps } from './downsample.ts'

const EMPTY: HistoryPoint = {
  atMs: 0,
  ...{ completedPerSecond: null, failedPerSecond: 0, enqueuedPerSecond: 0, waitP50Ms: null, waitP95Ms: null },
  ...{ waitP99Ms: null, durationP50Ms: null, durationP95Ms: null, durationP99Ms: null },
  ...{ ready: 0, delayed: 0, inProgress: 0, dead: 0 },
}
const QUARTER = { rangeMs: 900_000, stepMs: 2_000, pointsMax: 90 }
const points = (count: number, of: (step: number) => Partial<HistoryPoint> = () => ({})): readonly HistoryPoint[] =>
  Array.from({ length: count }, (_, step) => ({ ...EMPTY, atMs: 1_000_000_000 + step * 2_000, ...of(step) }))

test('few points stay as they are, and many become few', () => {
  const few = points(60)
  assert.deepEqual(downsample(few, { ...QUARTER, rangeMs: 120_000 }), few)
  assert.deepEqual(downsample([], QUARTER), [])
  for (const sampling of [QUARTER, { ...QUARTER, rangeMs: 300_000 }, { ...QUARTER, pointsMax: 30 }]) {
    const { rangeMs, pointsMax } = sampling
    const shown = downsample(points(450), sampling)
    assert.ok(shown.length > pointsMax / 2 && shown.length <= pointsMax + 1, `${shown.length} of ${pointsMax}`)
    const spanMs = (shown.at(-1)?.atMs ?? 0) - (shown[0]?.atMs ?? 0)
    assert.ok(spanMs <= rangeMs && spanMs > rangeMs * 0.9, `${spanMs} of ${rangeMs}`)
  }
  const quick = points(900).map((point, step) => ({ ...point, atMs: 1_000_000_000 + step * 500 }))
  assert.ok(downsample(quick, { ...QUARTER, rangeMs: 300_000, stepMs: 500 }).length <= 91)
})

test('a merged point has the mean of rates and depths and the highest p95, and knows what nobody knew', () => {
  const bursts = points(450, (step) => ({
    enqueuedPerSecond: step % 2 === 0 ? 0 : 8,
    durationP95Ms: step % 5 === 0 ? 900 : 1,
    waitP50Ms: step % 2 === 0 ? null : 6,
    ready: step % 2 === 0 ? 0 : 8,
  }))
  // 10 s are five points, so the share of the bursts varies by one.
  for (const { enqueuedPerSecond, durationP95Ms, waitP50Ms, ready, completedPerSecond } of downsample(
    bursts,
    QUARTER,
  ).slice(1, -1)) {
    assert.ok(enqueuedPerSecond !== null && Math.abs(enqueuedPerSecond - 4) < 1, `${enqueuedPerSecond}`)
    assert.ok(Math.abs((ready ?? 0) - 4) < 1)
    assert.deepEqual([durationP95Ms, waitP50Ms, completedPerSecond], [900, 6, null])
  }
})

test('a new point changes only the end of a line', () => {
  const all = points(460, (step) => ({ ready: step }))
  const before = downsample(all.slice(0, 455), QUARTER)
  const after = downsample(all, QUARTER)
  const inBoth = before.slice(3, -1)
  assert.deepEqual(after.slice(after.findIndex(({ atMs }) => atMs === inBoth[0]?.atMs)).slice(0, inBoth.length), inBoth)
})

test('a line is broken where samples are missing, and not where one is late', () => {
  const slept = points(450).filter((_, step) => step < 100 || step > 350)
  const late = points(450).map((point, step) => ({ ...point, atMs: point.atMs + (step % 7 === 0 ? 1_900 : 0) }))
  for (const sampling of [QUARTER, { ...QUARTER, pointsMax: 450 }]) {
    const gaps = withGaps(downsample(slept, sampling), sampling).filter(isGap)
    assert.equal(gaps.length, 1)
    const [gap] = gaps
    assert.ok(gap !== undefined && gap.atMs > (slept[99]?.atMs ?? 0) && gap.atMs < (slept[100]?.atMs ?? 0))
    assert.deepEqual(withGaps(downsample(late, sampling), sampling).filter(isGap), [])
  }
  assert.deepEqual(withGaps([], QUARTER), [])
})
