import type { Clock } from '../../time/clock.ts'

/** Sleepers that are woken by a call, by the time or by the end. */
export class Wakeups {
  readonly #clock: Clock
  readonly #sleepers = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Until it is woken, the time has come or one of the signals is aborted. */
  sleepUntil(untilMs: number, stops: readonly AbortSignal[]): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        cancel()
        this.#sleepers.delete(finish)
        for (const stop of stops) stop.removeEventListener('abort', finish)
        resolve()
      }
      const cancel = this.#clock.after(Math.max(1, untilMs - this.#clock.nowMs()), finish)
      this.#sleepers.add(finish)
      for (const stop of stops) stop.addEventListener('abort', finish, { once: true })
    })
  }

  wake(): void {
    for (const wake of [...this.#sleepers]) wake()
  }
}
