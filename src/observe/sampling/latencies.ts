/** What is shorter is told as this. */
const LEAST_MS = 0.1
const UNITS_PER_MS = 100
/** Each doubling is cut into so many buckets, a power of two: one is an eighth of its value wide, or less. */
const PARTS = 8
const PART_BITS = Math.log2(PARTS)
/** Almost six hours; what is longer is told as this. */
const UNITS_MAX = 2 ** 31 - 1
const BUCKETS = placeOf(UNITS_MAX) + 1

/**
 * Latencies of one step of time, counted in buckets: recording is one addition, however many there are, and a quantile is
 * right to a tenth of its value.
 */
export class Latencies {
  readonly #buckets = new Uint32Array(BUCKETS)
  #count = 0

  record(ms: number): void {
    const place = placeOf(Math.min(Math.max(0, ms * UNITS_PER_MS), UNITS_MAX))
    this.#buckets[place] = (this.#buckets[place] ?? 0) + 1
    this.#count += 1
  }

  /** The value that this share of all recorded ones does not exceed; null when none was recorded. */
  quantile(share: number): number | null {
    if (this.#count === 0) return null
    let left = Math.ceil(this.#count * share)
    let place = 0
    while (place < BUCKETS - 1) {
      left -= this.#buckets[place] ?? 0
      if (left <= 0) break
      place += 1
    }
    const middle = (leastOf(place) + leastOf(place + 1)) / 2
    return Math.max(LEAST_MS, middle / UNITS_PER_MS)
  }

  clear(): void {
    this.#buckets.fill(0)
    this.#count = 0
  }
}

/** By the bits of the whole number of units, because a logarithm for every job would be felt. */
function placeOf(units: number): number {
  const doublings = Math.max(0, 31 - PART_BITS - Math.clz32(units))
  return doublings * PARTS + (units >>> doublings)
}

/** The smallest number of units that a bucket counts. */
function leastOf(place: number): number {
  const doublings = Math.max(0, Math.floor(place / PARTS) - 1)
  return (place - doublings * PARTS) * 2 ** doublings
}
