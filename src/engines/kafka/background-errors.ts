import type { Clock } from '../../time/clock.ts'

/** An unreachable broker causes the same error several times a second. */
const QUIET_MS = 10_000
const TEXTS_MAX = 100
const UNHEARD_MAX = 20

/** Errors outside of any call. Listeners get each text at most once in ten seconds. */
export class BackgroundErrors {
  readonly #clock: Clock
  readonly #listeners = new Set<(error: unknown) => void>()
  readonly #toldMs = new Map<string, number>()
  /** Errors from before the first listener. */
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
