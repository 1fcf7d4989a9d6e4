import type { Clock } from '../../time/clock.ts'

/** While a broker is away the same is found out several times a second. */
const QUIET_MS = 10_000
const TEXTS_MAX = 100
const UNHEARD_MAX = 20

/** What goes wrong beside any call: told to whoever listens, but the same not again and again. */
export class BackgroundErrors {
  readonly #clock: Clock
  readonly #listeners = new Set<(error: unknown) => void>()
  readonly #toldMs = new Map<string, number>()
  /** What was found out while the group was joined, before anybody could listen. */
  #unheard: unknown[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  listen(listener: (error: unknown) => void): () => void {
    this.#listeners.add(listener)
    const missed = this.#unheard
    this.#unheard = []
    if (missed.length > 0)
      queueMicrotask(() => {
        for (const error of missed) listener(error)
      })
    return () => void this.#listeners.delete(listener)
  }

  tell(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - (this.#toldMs.get(text) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return
    if (this.#toldMs.size >= TEXTS_MAX) this.#toldMs.clear()
    this.#toldMs.set(text, nowMs)
    if (this.#listeners.size === 0) this.#unheard = [...this.#unheard, error].slice(-UNHEARD_MAX)
    for (const listener of this.#listeners) listener(error)
  }
}
