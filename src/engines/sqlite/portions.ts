import { systemClock } from '../../time/clock.ts'

/** How much one transaction takes on, so that it lasts about as long as it should, whatever the machine and the rows. */
export class Portions {
  readonly #least: number
  readonly #most: number
  readonly #aimMs: number
  #size: number

  constructor({ least, most, aimMs }: { readonly least: number; readonly most: number; readonly aimMs: number }) {
    this.#least = least
    this.#most = most
    this.#aimMs = aimMs
    this.#size = least
  }

  get size(): number {
    return this.#size
  }

  /** Runs `work` on `count` things, and takes more or fewer next time by how long it took. */
  timed<Value>(count: number, work: () => Value): Value {
    const startedAtMs = systemClock.monotonicMs()
    const value = work()
    this.#adapt(count, systemClock.monotonicMs() - startedAtMs)
    return value
  }

  /** Grows by no more than a half at a time, because one fast transaction says little about the next. */
  #adapt(count: number, tookMs: number): void {
    const fitting = tookMs > 0 ? (count * this.#aimMs) / tookMs : this.#most
    const next = Math.floor(Math.min(fitting, this.#size * 1.5 + 1))
    // A small rest at the end of a step is no reason to take less.
    if (count < this.#size && next > count) return
    this.#size = Math.max(this.#least, Math.min(this.#most, next))
  }
}
