import type { Clock } from '../../time/clock.ts'

/** Callers that sleep until something changes. */
export class Waiters {
  readonly #clock: Clock
  readonly #onChange: () => void
  readonly #waiting = new Set<() => void>()

  /** `onChange` runs when a caller begins or ends to wait. */
  constructor(clock: Clock, onChange: () => void) {
    this.#clock = clock
    this.#onChange = onChange
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  wake(): void {
    for (const wake of [...this.#waiting]) wake()
  }

  /** Resolves when woken, after `ms` of the injected clock, or when `signal` aborts. Without signals of its own: a job waits meanwhile. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      let cancel = (): void => {}
      const wake = (): void => {
        if (!this.#waiting.delete(wake)) return
        cancel()
        signal.removeEventListener('abort', wake)
        this.#onChange()
        resolve()
      }
      this.#waiting.add(wake)
      this.#onChange()
      signal.addEventListener('abort', wake, { once: true })
      cancel = this.#clock.after(ms, wake)
    })
  }

  close(): void {
    this.wake()
    this.#waiting.clear()
    this.#onChange()
  }
}
