import type { Clock } from '../time/clock.ts'
import type { ActiveJob } from './active-job.ts'
import type { Slots } from './slots.ts'

/**
 * Watches the timeouts of all running jobs with one timer. It is armed for the earliest deadline and checks all running
 * jobs when it fires, so a job that ends in time costs nothing.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #slots: Pick<Slots, 'running'>
  readonly #onPassed: (active: ActiveJob) => void
  #armedForMs = Number.POSITIVE_INFINITY
  #cancel: () => void = () => {}

  constructor(clock: Clock, slots: Pick<Slots, 'running'>, onPassed: (active: ActiveJob) => void) {
    this.#clock = clock
    this.#slots = slots
    this.#onPassed = onPassed
  }

  /** Call when a job starts. */
  watch(active: ActiveJob): void {
    const { deadlineMs } = active
    if (deadlineMs < this.#armedForMs) this.#arm(deadlineMs, active.startedAtMs)
  }

  close(): void {
    this.#cancel()
    this.#armedForMs = Number.POSITIVE_INFINITY
  }

  #arm(deadlineMs: number, nowMs: number): void {
    this.#cancel()
    this.#armedForMs = deadlineMs
    this.#cancel = this.#clock.after(Math.max(0, Math.ceil(deadlineMs - nowMs)), () => this.#sweep())
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs()
    this.#armedForMs = Number.POSITIVE_INFINITY
    const passed: ActiveJob[] = []
    let nextMs = Number.POSITIVE_INFINITY
    for (const active of this.#slots.running()) {
      if (active.deadlineMs <= nowMs) passed.push(active)
      else if (active.deadlineMs < nextMs) nextMs = active.deadlineMs
    }
    if (nextMs !== Number.POSITIVE_INFINITY) this.#arm(nextMs, nowMs)
    for (const active of passed) this.#onPassed(active)
  }
}
