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
  durationP50Ms: mean,
  durationP95Ms: highest,
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

/**
 * The points of the last `rangeMs`, several merged into one where they are too many. Steps begin at full clock times, so
 * a line does not change behind its newest point.
 */
export function downsample(points: readonly HistoryPoint[], sampling: Sampling): readonly HistoryPoint[] {
  const { rangeMs, stepMs, pointsMax } = sampling
  const newestMs = points.at(-1)?.atMs ?? 0
  const recent = points.filter(({ atMs }) => atMs > newestMs - rangeMs)
  const together = Math.ceil(rangeMs / stepMs / pointsMax)
  if (together <= 1) return recent
  const steps = Map.groupBy(recent, ({ atMs }) => Math.floor(atMs / (stepMs * together)))
  return [...steps.values()].map(merged)
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
