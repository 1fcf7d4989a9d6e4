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
