/**
 * One reading of a clock for everything that happens at once: the callbacks that run now and those already queued behind
 * them. A batch of a hundred events reads the clock once, where a reading costs more than counting an event.
 */
export class Moment {
  readonly #read: () => number
  readonly #forget: () => void
  #ms: number | null = null

  /** `read` is a clock's `nowMs` or `monotonicMs`. */
  constructor(read: () => number) {
    this.#read = read
    this.#forget = () => {
      this.#ms = null
    }
  }

  get ms(): number {
    if (this.#ms !== null) return this.#ms
    const ms = this.#read()
    this.#ms = ms
    PASSED.then(this.#forget)
    return ms
  }
}

const PASSED = Promise.resolve()
