import { type Clock, sleepWith } from '../../time/clock.ts'

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

  /** Resolves when woken, after `ms` of the injected clock, or when `signal` aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    // With a reason, because the usual one is an error with a stack.
    const wake = (): void => woken.abort('woken')
    this.#waiting.add(wake)
    this.#onChange()
    const until = AbortSignal.any([signal, woken.signal])
    return sleepWith((delayMs, run) => this.#clock.after(delayMs, run), ms, until).finally(() => {
      this.#waiting.delete(wake)
      this.#onChange()
    })
  }

  close(): void {
    this.wake()
    this.#waiting.clear()
    this.#onChange()
  }
}
