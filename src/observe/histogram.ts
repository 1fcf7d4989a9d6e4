/** In units. Larger values are rounded up by less than 1 %. */
const EXACT_BELOW = 1_000

/**
 * Counts durations by value, so that memory does not grow with their number. Rounding goes up: no limit is passed unseen.
 */
export class Histogram {
  readonly #unitMs: number
  readonly #counts = new Map<number, number>()
  #total = 0

  /** Durations are rounded to `unitMs`. */
  constructor(unitMs = 1) {
    this.#unitMs = unitMs
  }

  get total(): number {
    return this.#total
  }

  add(ms: number, times = 1): void {
    this.#count(roundUp(Math.round(Math.max(0, ms) / this.#unitMs)), times)
  }

  /** Both must have the same unit. */
  addAll(other: Histogram): void {
    for (const [units, times] of other.#counts) this.#count(units, times)
  }

  /** Nearest rank: the smallest value that at least this share of all does not exceed. Null when empty. */
  percentile(share: number): number | null {
    let left = Math.ceil(this.#total * share)
    for (const [units, times] of [...this.#counts].toSorted(([one], [other]) => one - other)) {
      left -= times
      if (left <= 0) return units * this.#unitMs
    }
    return null
  }

  clear(): void {
    this.#counts.clear()
    this.#total = 0
  }

  #count(units: number, times: number): void {
    this.#counts.set(units, (this.#counts.get(units) ?? 0) + times)
    this.#total += times
  }
}

/** To three digits, in decimal: values at round limits such as 30 s stay exact. A loop is cheaper than a logarithm. */
function roundUp(units: number): number {
  let step = 1
  while (units >= EXACT_BELOW * step) step *= 10
  return Math.ceil(units / step) * step
}
