import { type Clock, systemClock } from '../../time/clock.ts'

export interface Read<Value> {
  readonly value: Value
  /** When it was read. */
  readonly atMs: number
}

export interface ThrottleOptions {
  /** Between two reads; default: 1 second. */
  readonly everyMs?: number
  /**
   * The pause after a read, as a multiple of its duration; default: 100, so that reading takes at most 1 % of the time,
   * however large the store. The shorter of the last two durations counts, because one read may have been slow for other
   * reasons.
   */
  readonly rest?: number
  /** While reads are quicker than this, every reader has one of its own; default: 0. */
  readonly quickMs?: number
  readonly clock?: Clock
}

/**
 * A costly read for frequent readers. They get the last value at once; it is a second old, or older if reading takes long,
 * and is refreshed in the background.
 */
export class ThrottledQuery<Value> {
  readonly #query: () => Promise<Value>
  readonly #options: Required<ThrottleOptions>
  readonly #clock: Clock
  #last: Read<Value> | null = null
  #nextAtMs = 0
  #tookMs = Number.POSITIVE_INFINITY
  #underWay: Promise<Read<Value>> | null = null

  constructor(query: () => Promise<Value>, options: ThrottleOptions = {}) {
    this.#query = query
    this.#options = { everyMs: 1_000, rest: 100, quickMs: 0, clock: systemClock, ...options }
    this.#clock = this.#options.clock
  }

  /** Rejects only when the reader waits for the read: the first, or a quick one. Later failures show in the age of the value. */
  async read(): Promise<Read<Value>> {
    if (this.#tookMs < this.#options.quickMs) return this.#refresh()
    if (this.#clock.monotonicMs() < this.#nextAtMs && this.#last !== null) return this.#last
    this.#underWay ??= this.#refresh()
    if (this.#last === null) return this.#underWay
    this.#underWay.catch(() => {})
    return this.#last
  }

  /** The same for callers that can wait: an old value is refreshed first. */
  async fresh(): Promise<Read<Value>> {
    await this.read()
    if (this.#underWay !== null) return this.#underWay
    return this.read()
  }

  async #refresh(): Promise<Read<Value>> {
    const startedMs = this.#clock.monotonicMs()
    try {
      this.#last = { value: await this.#query(), atMs: this.#clock.nowMs() }
      return this.#last
    } finally {
      const endedMs = this.#clock.monotonicMs()
      const tookMs = endedMs - startedMs
      this.#nextAtMs = endedMs + Math.max(this.#options.everyMs, Math.min(tookMs, this.#tookMs) * this.#options.rest)
      this.#tookMs = tookMs
      this.#underWay = null
    }
  }
}
