import type { Clock } from '../time/clock.ts'
import type { ActiveJob } from './active-job.ts'

/** How long a claimed job should wait for its start at most. Jobs up to this duration count as short. */
const SHORT_MS = 20
const AHEAD_MAX = 256
/** Remote engines fetch the next batch while the last one runs. */
const AHEAD_MAX_REMOTE = 1_024
/** Finished jobs are counted in spans of this length: two claims can follow each other closely. */
const SPAN_MS = 20
/** Older observations are ignored. */
const STALE_MS = 250
/** After a waiting job had to be given back, nothing is claimed ahead for this long. */
const PENALTY_MS = 1_000
const NEWEST_SHARE = 0.1
const CAP_STEP = 32

/**
 * Decides how many jobs to claim beyond the free slots. Short jobs finish before the next claim returns, so a worker that
 * claims only for its free slots mostly waits for the engine. The estimate is the number of jobs that finished within
 * 20 ms in which it had some. It is halved when a job waited longer than 20 ms for its slot, and zero when jobs take long: another worker
 * could run those meanwhile.
 */
export class ClaimAhead {
  readonly #clock: Clock
  readonly #concurrency: number
  #spanFromMs = 0
  #finishedAtMs = 0
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
    this.#finishedAtMs = nowMs
    this.#finishedNow += 1
    this.#durationMs += (durationMs - this.#durationMs) * NEWEST_SHARE
  }

  /**
   * Jobs have come after a time without any. That time says nothing of how many the worker can finish: were it counted, a
   * store that answers slowly would be asked for few jobs at a time, and would be slower still.
   */
  resumed(nowMs: number): void {
    const idleMs = nowMs - this.#finishedAtMs
    if (idleMs <= STALE_MS) this.#spanFromMs += idleMs
  }

  /** A job claimed ahead got its slot after `ms`. */
  waited(ms: number): void {
    if (ms > SHORT_MS) this.#waitedLong = true
  }

  /** A job claimed ahead got no slot and was given back. */
  penalize(): void {
    this.#offUntilMs = this.#clock.monotonicMs() + PENALTY_MS
  }

  /** A claim is about to be made. */
  claimed(): void {
    this.#cap = this.#waitedLong ? Math.floor(this.#cap / 2) : Math.min(this.#cap + CAP_STEP, this.#max)
    this.#waitedLong = false
  }

  /** How many jobs may wait for a slot now. */
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

/** A claimed job that waits longer than this is given back, so that another worker can run it. */
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

  /** Removes and returns the jobs whose type matches. */
  takeOut(isMeant: (type: string) => boolean): readonly ActiveJob[] {
    const [out, left]: [ActiveJob[], ActiveJob[]] = [[], []]
    for (const active of this.#jobs) (isMeant(active.lease.job.type) ? out : left).push(active)
    this.#jobs = left
    return out
  }

  /** Removes and returns all jobs and stops the timer. */
  clear(): readonly ActiveJob[] {
    this.#cancel?.()
    this.#cancel = null
    return this.#jobs.splice(0)
  }

  /** The timer keeps running when the jobs have started: restarting it for every batch would cost more. */
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
