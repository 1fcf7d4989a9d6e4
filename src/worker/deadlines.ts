import type { Clock } from '../time/clock.ts'
import type { HeldJob } from './held-job.ts'
import type { Slots } from './slots.ts'

/**
 * Watches the timeouts of all running jobs with one timer. It is armed for the earliest deadline seen and, when it
 * fires, looks through what runs then; a job that ends in time costs nothing.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #slots: Pick<Slots, 'running'>
  readonly #onPassed: (held: HeldJob) => void
  #armedForMs = Number.POSITIVE_INFINITY
  #cancel: () => void = () => {}

  constructor(clock: Clock, slots: Pick<Slots, 'running'>, onPassed: (held: HeldJob) => void) {
    this.#clock = clock
    this.#slots = slots
    this.#onPassed = onPassed
  }

  /** One that starts now. */
  watch(held: HeldJob): void {
    const { deadlineMs } = held
    if (deadlineMs < this.#armedForMs) this.#arm(deadlineMs, held.startedAtMs)
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
    const passed: HeldJob[] = []
    let nextMs = Number.POSITIVE_INFINITY
    for (const held of this.#slots.running()) {
      if (held.deadlineMs <= nowMs) passed.push(held)
      else if (held.deadlineMs < nextMs) nextMs = held.deadlineMs
    }
    if (nextMs !== Number.POSITIVE_INFINITY) this.#arm(nextMs, nowMs)
    for (const held of passed) this.#onPassed(held)
  }
}
