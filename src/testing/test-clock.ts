import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Clock, sleepWith } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'

interface Timer {
  /** On the monotonic clock. */
  readonly atMs: number
  readonly order: number
  run(): void
}

/** Turns of the event loop given to the code under test after each timer, so that its promise chains can settle. */
const TURNS_PER_TIMER = 4

/**
 * A clock that moves only when told. Timers fire in order of their time while `advance` passes over them.
 *
 * @example
 * const clock = new TestClock()
 * await clock.advance('3d')
 */
export class TestClock implements Clock {
  #monotonicMs = 0
  /** What the wall clock is ahead of the monotonic one. */
  #offsetMs: number
  #order = 0
  readonly #timers = new Set<Timer>()

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#offsetMs = startMs
  }

  /** Whole milliseconds, as every wall clock here has them: a jitter may let a timer fire between two. */
  nowMs(): number {
    return Math.floor(this.#monotonicMs + this.#offsetMs)
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepWith((delayMs, run) => this.after(delayMs, run), ms, signal)
  }

  after(ms: number, run: () => void): () => void {
    const timer: Timer = { atMs: this.#monotonicMs + Math.max(0, ms), order: this.#order, run }
    this.#order += 1
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  /** Timers that wait: a test can assert that nothing was left behind. */
  get waiting(): number {
    return this.#timers.size
  }

  /**
   * Sets the wall clock forward, or back with a negative number of milliseconds, as an operator or a time server does.
   * No time passes: timers and the monotonic clock stay where they are.
   */
  step(ms: number): void {
    this.#offsetMs += ms
  }

  async advance(duration: Duration): Promise<void> {
    const untilMs = this.#monotonicMs + parseDurationMs(duration, 'advance')
    await settle()
    for (let timer = this.#next(untilMs); timer !== null; timer = this.#next(untilMs)) {
      this.#timers.delete(timer)
      this.#monotonicMs = Math.max(this.#monotonicMs, timer.atMs)
      timer.run()
      await settle()
    }
    this.#monotonicMs = untilMs
    await settle()
  }

  #next(untilMs: number): Timer | null {
    let first: Timer | null = null
    for (const timer of this.#timers) {
      if (timer.atMs > untilMs) continue
      const earlier =
        first === null || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order)
      if (earlier) first = timer
    }
    return first
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS_PER_TIMER; turn += 1) await nextTurn()
}
