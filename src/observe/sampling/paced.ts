import { type Clock, systemClock } from '../../time/clock.ts'

export interface Found<Value> {
  readonly value: Value
  /** When it was found. */
  readonly atMs: number
}

/** Asked at most this often. */
const EVERY_MS = 1_000
/**
 * How many times as long as an answer took it rests: counting takes 1 % of the time at most, however many jobs there are.
 * The shorter one of the last two is meant, because a machine that stood still for a second says nothing about counting.
 */
const REST = 100

/**
 * A costly question to a store, for those who look often: answered as it was a second ago, or longer where it takes long.
 * Whoever asks is answered at once with what is known, and what is old is asked anew meanwhile.
 */
export class Paced<Value> {
  readonly #ask: () => Promise<Value>
  readonly #clock: Clock
  #last: Found<Value> | null = null
  #nextAtMs = 0
  #tookMs = Number.POSITIVE_INFINITY
  #underWay: Promise<Found<Value>> | null = null

  constructor(ask: () => Promise<Value>, clock: Clock = systemClock) {
    this.#ask = ask
    this.#clock = clock
  }

  /** Rejects when the first answer does; after that, a store that is away is known by how old the answer is. */
  async read(): Promise<Found<Value>> {
    if (this.#clock.monotonicMs() < this.#nextAtMs && this.#last !== null) return this.#last
    this.#underWay ??= this.#anew()
    if (this.#last === null) return this.#underWay
    this.#underWay.catch(() => {})
    return this.#last
  }

  /** The same for whoever can wait: what is old is asked anew first. */
  async renewed(): Promise<Found<Value>> {
    await this.read()
    if (this.#underWay !== null) return this.#underWay
    return this.read()
  }

  async #anew(): Promise<Found<Value>> {
    const startedMs = this.#clock.monotonicMs()
    try {
      this.#last = { value: await this.#ask(), atMs: this.#clock.nowMs() }
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
