import { type Clock, systemClock } from '../../time/clock.ts'

export interface Read<Value> {
  readonly value: Value
  /** When it was read. */
  readonly atMs: number
}

/** Between two reads. */
const EVERY_MS = 1_000
/**
 * The pause after a read, as a multiple of its duration: reading takes at most 1 % of the time, however large the store.
 * The shorter of the last two durations counts, because one read may have been slow for other reasons.
 */
const REST = 100

/**
 * A costly read for frequent readers. They get the last value at once; it is a second old, or older if reading takes long,
 * and is refreshed in the background.
 */
export class ThrottledQuery<Value> {
  readonly #query: () => Promise<Value>
  readonly #clock: Clock
  #last: Read<Value> | null = null
  #nextAtMs = 0
  #tookMs = Number.POSITIVE_INFINITY
  #underWay: Promise<Read<Value>> | null = null

  constructor(query: () => Promise<Value>, clock: Clock = systemClock) {
    this.#query = query
    this.#clock = clock
  }

  /** Rejects only when the first read does. Later failures show in the age of the value. */
  async read(): Promise<Read<Value>> {
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
      this.#nextAtMs = endedMs + Math.max(EVERY_MS, Math.min(tookMs, this.#tookMs) * REST)
      this.#tookMs = tookMs
      this.#underWay = null
    }
  }
}
