import type { Clock } from '../time/clock.ts'

/** What a claimed job may wait for its start, and the stretch of time over which finished jobs are counted. */
const WINDOW_MS = 20
const AHEAD_MAX = 256
/** A waiting job that had to be given back shows that the guess was wrong; none is made for this long. */
const PENALTY_MS = 1_000
const NEWEST_SHARE = 0.1

/**
 * How many jobs to claim beyond the free slots. Short jobs are done before the next claim could return, so a worker
 * that claimed only for its free slots would mostly wait for the engine. It guesses from what it has just seen: as
 * many as finished in about the last 20 ms, and none when jobs take long, because those would only wait here while
 * another worker could run them.
 */
export class ClaimAhead {
  readonly #clock: Clock
  readonly #concurrency: number
  #windowStartMs = 0
  #finishedNow = 0
  #finishedBefore = 0
  #durationMs = 0
  #offUntilMs = 0

  constructor(clock: Clock, concurrency: number) {
    this.#clock = clock
    this.#concurrency = concurrency
  }

  finished(durationMs: number): void {
    this.#finishedNow += 1
    this.#durationMs += (durationMs - this.#durationMs) * NEWEST_SHARE
  }

  /** A claimed job waited too long. */
  penalize(): void {
    this.#offUntilMs = this.#clock.monotonicMs() + PENALTY_MS
  }

  /** Jobs that may wait here now. */
  get size(): number {
    const nowMs = this.#clock.monotonicMs()
    this.#rotate(nowMs)
    if (nowMs < this.#offUntilMs || this.#durationMs > WINDOW_MS) return 0
    const inTime = Math.floor((this.#concurrency * WINDOW_MS) / Math.max(this.#durationMs, 0.01))
    return Math.min(Math.max(this.#finishedNow, this.#finishedBefore), inTime, AHEAD_MAX)
  }

  #rotate(nowMs: number): void {
    const ageMs = nowMs - this.#windowStartMs
    if (ageMs < WINDOW_MS) return
    this.#finishedBefore = ageMs < 2 * WINDOW_MS ? this.#finishedNow : 0
    this.#finishedNow = 0
    this.#windowStartMs = nowMs
  }
}
