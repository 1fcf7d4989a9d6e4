/** Ranges and ticks of the charts. */
import type uPlot from 'uplot'

const SECONDS_MIN = 60

/** At least a minute, so that the first samples have a place, and no sample has one too. */
export function timeRange(_: unknown, min: number | null, max: number | null): [number, number] {
  const end = max ?? Date.now() / 1_000
  return [Math.min(min ?? end, end - SECONDS_MIN), end]
}

/** From zero, with room above the highest value, and room for whole numbers if it is small. */
export function countRange(_: unknown, __: unknown, max: number | null): [number, number] {
  return [0, Math.max(4, (max ?? 0) * 1.15)]
}

/** 1, 2 and 5 times a power of ten: the labels of a step of 2.5 would be rounded to 0, 3, 5 and 8. */
export const COUNT_STEPS: readonly number[] = Array.from({ length: 13 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat()

const HOUR = 3_600
export const STEPS_SECONDS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800],
  ...[1, 2, 3, 6, 12, 24, 48, 72, 168, 336, 720].map((hours) => hours * HOUR),
]

/** Powers of ten around the values, at least two. A logarithmic axis has no zero. */
export function durationRange(_: unknown, min: number | null, max: number | null): [number, number] {
  const low = Math.floor(Math.log10(Math.max(1, min ?? 1)))
  return [10 ** low, 10 ** Math.max(low + 2, Math.ceil(Math.log10(Math.max(1, max ?? 1))))]
}

/** Durations from a millisecond to days, about ten times the last one each. */
const DURATIONS: readonly (readonly [ms: number, label: string])[] = [
  [1, '1 ms'],
  [10, '10 ms'],
  [100, '100 ms'],
  [1_000, '1 s'],
  [10_000, '10 s'],
  [60_000, '1 min'],
  [600_000, '10 min'],
  [3_600_000, '1 h'],
  [36_000_000, '10 h'],
  [86_400_000, '1 d'],
  [864_000_000, '10 d'],
  [8_640_000_000, '100 d'],
]
const LABELS = new Map(DURATIONS)

export const DURATION_TICKS = {
  splits: (_: unknown, __: number, min: number, max: number): number[] =>
    [...LABELS.keys()].filter((ms) => ms >= min && ms <= max),
  values: (_: unknown, splits: readonly number[]): string[] => splits.map((ms) => LABELS.get(ms) ?? ''),
  filter: (_: unknown, splits: number[]): number[] => splits,
} satisfies uPlot.Axis
