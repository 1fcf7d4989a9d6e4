/** Below this every duration is told apart; above it three digits are kept. */
const EXACT_MS = 1_000

/**
 * How often each duration occurred, without keeping every one of them: an hour of a busy worker has millions. What is
 * rounded is rounded up, so that a limit is never passed unseen, by less than one part in a hundred.
 */
export class Durations {
  readonly #counts = new Map<number, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  add(ms: number, times = 1): void {
    const rounded = roundUp(Math.max(0, ms))
    this.#counts.set(rounded, (this.#counts.get(rounded) ?? 0) + times)
    this.#total += times
  }

  addAll(other: Durations): void {
    for (const [ms, times] of other.#counts) this.add(ms, times)
  }

  /** By nearest rank: the smallest duration that so large a share of all does not exceed. 0 where there is none. */
  percentile(share: number): number {
    let left = Math.ceil(this.#total * share)
    for (const [ms, times] of [...this.#counts].toSorted(([one], [other]) => one - other)) {
      left -= times
      if (left <= 0) return ms
    }
    return 0
  }
}

function roundUp(ms: number): number {
  if (ms < EXACT_MS) return Math.round(ms)
  const step = 10 ** (Math.floor(Math.log10(ms)) - 2)
  return Math.ceil(ms / step) * step
}
