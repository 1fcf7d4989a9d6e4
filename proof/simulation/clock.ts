/** The time of a simulation. It moves only from one timer to the next, when the scheduler says so. */
import { type Clock, sleepWith } from '../../src/time/clock.ts'

/** Whose timer it is: a simulated process. */
export interface Owner {
  /** A dead process hears nothing any more; its timers are gone. */
  readonly isDead: boolean
  /** What a paused one would hear waits until it goes on. */
  readonly isPaused: boolean
}

interface Timer {
  readonly atMs: number
  readonly order: number
  readonly owner: Owner
  run(): void
}

const START_MS = Date.UTC(2026, 0, 1)

export class SimulatedClock {
  #monotonicMs = 0
  /** What the wall clock is ahead of the monotonic one. */
  #offsetMs = START_MS
  #order = 0
  readonly #timers = new Set<Timer>()
  /** Grows with each timer that is set or taken back, so that a scheduler sees whether something happens. */
  changes = 0

  nowMs(): number {
    return this.#monotonicMs + this.#offsetMs
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  /** The clock as a process has it: the same time, and timers that end with it. */
  of(owner: Owner): Clock {
    const after: Clock['after'] = (ms, run) => {
      // In whole milliseconds, as real timers and wall clocks have them.
      const timer = { atMs: this.#monotonicMs + Math.max(0, Math.ceil(ms)), order: this.#order, owner, run }
      this.#order += 1
      this.changes += 1
      this.#timers.add(timer)
      return () => {
        if (this.#timers.delete(timer)) this.changes += 1
      }
    }
    return {
      nowMs: () => this.nowMs(),
      monotonicMs: () => this.monotonicMs(),
      sleep: (ms, signal) => sleepWith(after, ms, signal),
      after,
    }
  }

  /** As an operator or a time server does: no time passes. */
  step(ms: number): void {
    this.#offsetMs += ms
  }

  /** When the next timer fires; null when none waits. */
  get nextMs(): number | null {
    const next = this.#next()
    return next === null ? null : Math.max(next.atMs, this.#monotonicMs)
  }

  /**
   * Moves to the next timer and fires it, together with all others of its owner that are due: an event loop does not turn
   * between them. False when none waits.
   */
  fireNext(): boolean {
    const first = this.#next()
    if (first === null) return false
    this.#monotonicMs = Math.max(this.#monotonicMs, first.atMs)
    const due = [...this.#timers].filter(({ owner, atMs }) => owner === first.owner && atMs <= this.#monotonicMs)
    for (const timer of due.sort((a, b) => (isEarlier(a, b) ? -1 : 1))) {
      // An earlier one may have taken it back.
      if (this.#timers.delete(timer)) timer.run()
    }
    return true
  }

  #next(): Timer | null {
    let first: Timer | null = null
    for (const timer of this.#timers) {
      if (timer.owner.isDead) this.#timers.delete(timer)
      else if (!timer.owner.isPaused && (first === null || isEarlier(timer, first))) first = timer
    }
    return first
  }
}

function isEarlier(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
