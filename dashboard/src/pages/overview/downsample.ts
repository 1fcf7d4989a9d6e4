import type { HistoryPoint } from '../../api/shapes.ts'

type Merge = (values: readonly number[]) => number
type Values = Omit<HistoryPoint, 'atMs'>

const mean: Merge = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
const highest: Merge = (values) => Math.max(...values)

/** A slow job must not disappear in an average. */
const MERGES: { readonly [Name in keyof Values]: Merge } = {
  completedPerSecond: mean,
  failedPerSecond: mean,
  enqueuedPerSecond: mean,
  waitP50Ms: mean,
  waitP95Ms: highest,
  waitP99Ms: highest,
  durationP50Ms: mean,
  durationP95Ms: highest,
  durationP99Ms: highest,
  ready: mean,
  delayed: mean,
  inProgress: mean,
  dead: mean,
}

export interface Sampling {
  readonly rangeMs: number
  /** Between two points of the server. */
  readonly stepMs: number
  /** With more points than a line has room for, bursts merge into a solid block. */
  readonly pointsMax: number
}

/** A time of which nothing is known, such as when the machine slept: a line ends before it and begins anew behind it. */
export interface Gap {
  readonly atMs: number
  readonly isGap: true
}

export function isGap(point: HistoryPoint | Gap): point is Gap {
  return 'isGap' in point
}

/**
 * The points of the last `rangeMs`, several merged into one where they are too many. Steps begin at full clock times, so
 * a line does not change behind its newest point.
 */
export function downsample(points: readonly HistoryPoint[], sampling: Sampling): readonly HistoryPoint[] {
  const { rangeMs, stepMs } = sampling
  const newestMs = points.at(-1)?.atMs ?? 0
  const recent = points.filter(({ atMs }) => atMs > newestMs - rangeMs)
  const mergedMs = mergedStepMs(sampling)
  if (mergedMs <= stepMs) return recent
  return [...Map.groupBy(recent, ({ atMs }) => Math.floor(atMs / mergedMs)).values()].map(merged)
}

function mergedStepMs({ rangeMs, stepMs, pointsMax }: Sampling): number {
  return stepMs * Math.max(1, Math.ceil(rangeMs / stepMs / pointsMax))
}

/** Samples may be late, so that two steps without one are no gap yet. */
const STEPS_MISSING_MIN = 3

/** Downsampled points, with the gaps between them. */
export function withGaps(points: readonly HistoryPoint[], sampling: Sampling): readonly (HistoryPoint | Gap)[] {
  const stepMs = mergedStepMs(sampling)
  return points.flatMap((point, index) => {
    const lastMs = points[index - 1]?.atMs ?? point.atMs
    const isAfterGap = point.atMs - lastMs > stepMs * STEPS_MISSING_MIN
    return isAfterGap ? [{ atMs: lastMs + stepMs, isGap: true } as const, point] : [point]
  })
}

function merged(points: readonly HistoryPoint[]): HistoryPoint {
  const last = points.at(-1)
  if (last === undefined) throw new Error('a step has at least one point')
  const values = Object.entries(MERGES).map(([name, merge]) => {
    // The names are those of a point.
    const known = points.map((point) => point[name as keyof Values]).filter((value) => value !== null)
    return [name, known.length === 0 ? null : merge(known)]
  })
  return { ...last, ...Object.fromEntries(values) }
}
