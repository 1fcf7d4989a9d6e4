import type { RecordTable } from '../../engine/memory-records.ts'
import type { Clock } from '../../time/clock.ts'
import { ClockSteps } from '../../time/clock.ts'
import type { Backlog } from './backlog.ts'
import type { Leases } from './leases.ts'
import type { JobTable } from './table.ts'
import type { Wakeups } from './wakeups.ts'

interface Timed {
  readonly wakeups: Wakeups
  readonly records: RecordTable
}

interface Jobs {
  readonly table: JobTable
  readonly backlog: Backlog
  readonly leases: Leases
}

/** Corrects the times in a store when the clock of its engines is set. */
export class StoreClock {
  readonly #store: Timed
  readonly #jobs: Jobs
  #followed: { readonly clock: Clock; readonly steps: ClockSteps } | null = null

  constructor(store: Timed, jobs: Jobs) {
    this.#store = store
    this.#jobs = jobs
  }

  /**
   * Notices that the clock was set, and moves what counts elapsed time with it: leases, rate limits, records that expire.
   * When it was set back, jobs that were due stay due and retries keep their delay; every other due time is a time of
   * day, and stays. Engines over one store share a clock; an engine with another clock is ignored.
   */
  follow(clock: Clock): void {
    this.#followed ??= { clock, steps: new ClockSteps(clock) }
    const stepMs = this.#followed.clock === clock ? this.#followed.steps.take() : 0
    if (stepMs === 0) return
    this.#jobs.leases.shift(stepMs)
    this.#jobs.backlog.shiftLimits(stepMs)
    this.#store.records.shift(stepMs)
    if (stepMs < 0) this.#keepDue(clock.nowMs(), -stepMs)
    // Waiting claims look with the next step: this may be called from within such a look.
    this.#store.wakeups.markQueued()
  }

  #keepDue(nowMs: number, backMs: number): void {
    const { table, backlog } = this.#jobs
    const wasMs = nowMs + backMs
    for (const row of table.list({ state: 'queued', limit: Number.POSITIVE_INFINITY })) {
      const isMoved = row.dueMs > nowMs && (row.dueMs <= wasMs || (row.attempt > 0 && row.dueMs <= wasMs + backMs))
      if (!isMoved) continue
      const isClaimable = backlog.remove(row)
      row.dueMs -= backMs
      if (isClaimable) backlog.add(row)
    }
  }
}
