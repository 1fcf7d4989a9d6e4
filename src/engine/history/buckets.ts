/**
 * Durations counted by size, so that counts of two times can be added: a percentile of the sum is right, whereas a mean of
 * percentiles would not be. A bucket is an eighth of a power of two wide, so a percentile is too high by less than 12.5 %.
 */
export type Buckets = Map<number, number>

/** Shorter durations share the first bucket. */
const LEAST_MS = 0.125
const UNITS_PER_MS = 64
/** The octave of `LEAST_MS`, in units. */
const FIRST_OCTAVE = 3
/** Up to a thousand years. */
const OCTAVES = 48
const LONGEST_MS: number = LEAST_MS * 2 ** OCTAVES
export const BUCKETS: number = OCTAVES * 8 + 1

/** Called for every attempt: no logarithm below a year. */
export function bucketOf(ms: number): number {
  if (!(ms >= LEAST_MS)) return 0
  const units = Math.min(ms, LONGEST_MS) * UNITS_PER_MS
  const isSmall = units < 2 ** 31
  const octave = (isSmall ? 31 - Math.clz32(units) : Math.floor(Math.log2(units))) - FIRST_OCTAVE
  const eighth = isSmall ? units >>> octave : Math.floor(units / 2 ** octave)
  return Math.min(BUCKETS - 1, octave * 8 + eighth - 7)
}

/** No duration of the bucket is longer. */
export function longestOf(bucket: number): number {
  if (bucket === 0) return LEAST_MS
  const [octave, eighth] = [(bucket - 1) >> 3, (bucket - 1) & 7]
  return ((eighth + 9) * 2 ** octave) / UNITS_PER_MS
}

export function addBuckets(sum: Buckets, more: Iterable<readonly [number, number]>): void {
  for (const [bucket, times] of more) sum.set(bucket, (sum.get(bucket) ?? 0) + times)
}

/** `2 ** level` buckets become one, the longest of them: nothing is counted as shorter than it was. */
export function coarsened(buckets: Buckets, level: number): Buckets {
  const coarse: Buckets = new Map()
  const group = 2 ** level - 1
  addBuckets(
    coarse,
    [...buckets].map(([bucket, times]) => [
      bucket === 0 ? 0 : Math.min(BUCKETS - 1, ((bucket - 1) | group) + 1),
      times,
    ]),
  )
  return coarse
}

/** Nearest rank. Null when nothing was counted. */
export function percentileOf(buckets: Buckets, share: number): number | null {
  let left = Math.ceil([...buckets.values()].reduce((sum, times) => sum + times, 0) * share)
  for (const [bucket, times] of [...buckets].toSorted(([one], [other]) => one - other)) {
    left -= times
    if (left <= 0) return longestOf(bucket)
  }
  return null
}
