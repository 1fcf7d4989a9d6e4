import type { Clock } from './clock.ts'

/** Smaller differences are corrections of a time server, or leap seconds; leases are not counted more exactly than that. */
export const STEP_MS_MIN = 1_000

/**
 * Notices that the wall clock was set: it has then moved against the monotonic clock, which nobody can set. A machine
 * that was suspended looks the same, because the monotonic clock stands still meanwhile.
 */
export class ClockSteps {
  readonly #clock: Clock
  #offsetMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#offsetMs = clock.nowMs() - clock.monotonicMs()
  }

  /** By how much the clock was set since the last call, negative for back; 0 when it was not. */
  take(): number {
    const offsetMs = this.#clock.nowMs() - this.#clock.monotonicMs()
    const stepMs = offsetMs - this.#offsetMs
    if (Math.abs(stepMs) < STEP_MS_MIN) return 0
    this.#offsetMs = offsetMs
    return stepMs
  }
}
