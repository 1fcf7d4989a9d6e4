import type { Clock } from '../time/clock.ts'
import type { ActiveJob } from './active-job.ts'

/** What a claimed job should wait for its start at most, and the longest that a job counts as short. */
const SHORT_MS = 20
const AHEAD_MAX = 256
/** Where the next claim is asked for while the last is run, there are two of them. */
const AHEAD_MAX_REMOTE = 1_024
/** Finished jobs are counted in spans of this length, because a claim can come right after another. */
const SPAN_MS = 20
/** What was seen longer ago than this says nothing about now. */
const STALE_MS = 250
/** A waiting job that had to be given back shows that the guess was wrong; none is made for this long. */
const PENALTY_MS = 1_000
const NEWEST_SHARE = 0.1
const CAP_STEP = 32

/**
 * How many jobs to claim beyond the free slots. Short jobs are done before the next claim could return, so a worker
 * that claimed only for its free slots would mostly wait for the engine. It guesses from what it has just seen: as
 * many as finished within 20 ms. The guess is halved when a job waited longer than 20 ms for its slot,
 * and it is zero when jobs take long, because those would only wait here while another worker could run them.
 */
export class ClaimAhead {
  readonly #clock: Clock
  readonly #concurrency: number
  #spanFromMs = 0
  #finishedNow = 0
  #finishedBefore = 0
  #durationMs = 0
  readonly #max: number
  #cap: number
  #waitedLong = false
  #offUntilMs = 0

  constructor(clock: Clock, concurrency: number, isRemote = false) {
    this.#clock = clock
    this.#concurrency = concurrency
    this.#max = isRemote ? AHEAD_MAX_REMOTE : AHEAD_MAX
    this.#cap = this.#max
  }

  /** `nowMs`: on the monotonic clock. */
  finished(durationMs: number, nowMs: number): void {
    this.#turnSpan(nowMs)
    this.#finishedNow += 1
    this.#durationMs += (durationMs - this.#durationMs) * NEWEST_SHARE
  }

  /** A job claimed ahead has got its slot. */
  waited(ms: number): void {
    if (ms > SHORT_MS) this.#waitedLong = true
  }

  /** A job claimed ahead got no slot and was given back. */
  penalize(): void {
    this.#offUntilMs = this.#clock.monotonicMs() + PENALTY_MS
  }

  /** A claim is being asked for. */
  claimed(): void {
    this.#cap = this.#waitedLong ? Math.floor(this.#cap / 2) : Math.min(this.#cap + CAP_STEP, this.#max)
    this.#waitedLong = false
  }

  /** Jobs that may wait here now. */
  get size(): number {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs < this.#offUntilMs || this.#durationMs > SHORT_MS || nowMs - this.#spanFromMs > STALE_MS) return 0
    const inTime = Math.floor((this.#concurrency * SHORT_MS) / Math.max(this.#durationMs, 0.01))
    return Math.min(Math.max(this.#finishedNow, this.#finishedBefore), inTime, this.#cap)
  }

  #turnSpan(nowMs: number): void {
    const ageMs = nowMs - this.#spanFromMs
    if (ageMs < SPAN_MS) return
    this.#finishedBefore = ageMs > STALE_MS ? 0 : this.#finishedNow
    this.#finishedNow = 0
    this.#spanFromMs = nowMs
  }
}

/** No claimed job waits longer than this for its start; then another worker may have it. */
const WAIT_MS_MAX = 50

/** Jobs claimed ahead of their slots, first come first served. */
export class WaitingJobs {
  readonly #clock: Clock
  readonly #onOverdue: (overdue: readonly ActiveJob[]) => void
  #jobs: ActiveJob[] = []
  #cancel: (() => void) | null = null

  constructor(clock: Clock, onOverdue: (overdue: readonly ActiveJob[]) => void) {
    this.#clock = clock
    this.#onOverdue = onOverdue
  }

  get size(): number {
    return this.#jobs.length
  }

  values(): readonly ActiveJob[] {
    return this.#jobs
  }

  add(active: ActiveJob): void {
    this.#jobs.push(active)
    if (this.#cancel === null) this.#watch()
  }

  next(): ActiveJob | undefined {
    return this.#jobs.shift()
  }

  remove(active: ActiveJob): void {
    this.#jobs = this.#jobs.filter((other) => other !== active)
  }

  /** Takes those of some types out. */
  takeOut(isMeant: (type: string) => boolean): readonly ActiveJob[] {
    const [out, left]: [ActiveJob[], ActiveJob[]] = [[], []]
    for (const active of this.#jobs) (isMeant(active.lease.job.type) ? out : left).push(active)
    this.#jobs = left
    return out
  }

  /** Takes all of them out, for good. */
  clear(): readonly ActiveJob[] {
    this.#cancel?.()
    this.#cancel = null
    return this.#jobs.splice(0)
  }

  /** The timer runs on when the jobs have started: stopping and starting it for every batch would cost more. */
  #watch(): void {
    this.#cancel = this.#clock.after(WAIT_MS_MAX, () => {
      this.#cancel = null
      const nowMs = this.#clock.monotonicMs()
      const overdue: ActiveJob[] = []
      const isOverdue = (active: ActiveJob | undefined) =>
        active !== undefined && nowMs - active.heldAtMs >= WAIT_MS_MAX
      while (isOverdue(this.#jobs[0])) overdue.push(...this.#jobs.splice(0, 1))
      if (this.#jobs.length > 0) this.#watch()
      if (overdue.length > 0) this.#onOverdue(overdue)
    })
  }
}
