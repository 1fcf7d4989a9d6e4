import type { ResolutionKind } from '../../engine/history/resolutions.ts'

export interface Range {
  readonly ms: number
  /** Of an answer, which has at most 180. */
  readonly stepMs: number
  /** What it is read from. */
  readonly kind: ResolutionKind
}

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000] as const

export const RANGE_NAMES = ['15m', '1h', '24h', '7d', '90d'] as const
export type RangeName = (typeof RANGE_NAMES)[number]

export const RANGES: Readonly<Record<RangeName, Range>> = Object.freeze({
  '15m': { ms: 15 * MINUTE_MS, stepMs: 5_000, kind: 'second' },
  '1h': { ms: HOUR_MS, stepMs: MINUTE_MS, kind: 'minute' },
  '24h': { ms: 24 * HOUR_MS, stepMs: 10 * MINUTE_MS, kind: 'minute' },
  '7d': { ms: 168 * HOUR_MS, stepMs: HOUR_MS, kind: 'hour' },
  '90d': { ms: 2_160 * HOUR_MS, stepMs: 12 * HOUR_MS, kind: 'hour' },
})
