/** The value below which the given share of the sample lies, by nearest rank: always a value that was measured. */
export function percentile(sample: readonly number[], share: number): number {
  if (sample.length === 0) return Number.NaN
  const sorted = sample.toSorted((a, b) => a - b)
  const rank = Math.max(1, Math.ceil((share / 100) * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

/** The middle of the rounds; of an even number of them the mean of the two in the middle. */
export function median(sample: readonly number[]): number {
  const sorted = sample.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  if (sorted.length % 2 === 1) return upper
  return ((sorted[sorted.length / 2 - 1] ?? Number.NaN) + upper) / 2
}

/** A seeded generator (mulberry32), so that gaps between jobs are random and yet the same in every run. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
