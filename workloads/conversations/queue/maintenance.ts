import { inspectorOf } from '../../../src/engine/capability-checks.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { OptionError } from '../../../src/errors.ts'
import type { Log } from '../../../src/job/definition.ts'
import { redact } from '../../../src/job/error-record.ts'
import { refuseUnknown } from '../../../src/job/known-options.ts'
import { verdict } from '../../../src/keeper/reaper.ts'
import { sweepOnce } from '../../../src/keeper/retention.ts'
import { silentLog } from '../../../src/observe/log.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'

export const RETENTION_DAYS = 7
export const STALE_LEASE_MS = 300_000
/** How often the pipeline calls them. A keeper does both by itself. */
export const CLEANUP_EVERY_MS = 86_400_000
export const RELEASE_EVERY_MS = 30_000

const DAY_MS = 86_400_000
const PAGE = 1_000
const NO_WAIT = new AbortController().signal

export interface MaintenanceOptions {
  /** The worker id that takes over stale leases. */
  readonly worker: string
  readonly clock?: Clock
  readonly log?: Log
  readonly random?: () => number
}

/** The pipeline's maintenance functions, for code that calls them itself. */
export class Maintenance {
  readonly #engine: Engine
  readonly #options: MaintenanceOptions
  readonly #clock: Clock
  readonly #log: Log

  constructor(engine: Engine, options: MaintenanceOptions) {
    refuseUnknown(options, { worker: true, clock: true, log: true, random: true }, 'Maintenance')
    this.#engine = engine
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#log = options.log ?? silentLog
  }

  /** Removes jobs that completed longer ago than this many days. Returns how many. */
  async cleanupCompletedJobs(retentionDays: number = RETENTION_DAYS): Promise<number> {
    if (!(retentionDays >= 0 && retentionDays <= 36_500)) {
      throw new OptionError(`'retentionDays' is ${retentionDays}; give days from 0 to 36500`)
    }
    const beforeMs = this.#clock.nowMs() - retentionDays * DAY_MS
    const parts = { engine: this.#engine, clock: this.#clock }
    const count = await sweepOnce(parts, [{ what: 'completed', beforeMs }])
    this.#log.info('Completed jobs cleaned up', { count, retention_days: retentionDays })
    return count
  }

  /**
   * Takes jobs from holders whose lease ran out longer ago than `timeoutMs`, and retries them or makes dead letters of
   * them, like any failed attempt. Returns how many. The time counts from the end of the lease, so 0 is what a keeper does.
   */
  async releaseStaleLeases(timeoutMs: number = STALE_LEASE_MS): Promise<number> {
    if (!(timeoutMs >= 0 && Number.isFinite(timeoutMs))) {
      throw new OptionError(`'timeoutMs' is ${timeoutMs}; give milliseconds of 0 or more`)
    }
    const max = await this.#countStale(this.#clock.nowMs() - timeoutMs)
    const count = max === 0 ? 0 : await this.#release(max)
    if (count > 0) this.#log.warn('Stale leases released', { count, timeout_ms: timeoutMs })
    return count
  }

  async #countStale(beforeMs: number): Promise<number> {
    const inspector = inspectorOf(this.#engine)
    let count = 0
    let before: string | undefined
    for (;;) {
      const page = await inspector.list({ state: 'in_progress', limit: PAGE, ...(before !== undefined && { before }) })
      count += page.filter(({ leaseUntilMs }) => leaseUntilMs !== null && leaseUntilMs < beforeMs).length
      before = page.at(-1)?.id
      if (page.length < PAGE) return count
    }
  }

  /** Engines hand out the longest overdue first: these are the stale ones. */
  async #release(max: number): Promise<number> {
    const { worker, random = Math.random } = this.#options
    const parts = { definitions: new Map(), random, redactor: redact }
    const consumer = await this.#engine.consume({ types: 'every', worker })
    try {
      const leases = await consumer.claim({ max, waitMs: 0, signal: NO_WAIT, from: 'expired' })
      const settlements = leases.map((lease) => ({ lease, outcome: verdict(parts, lease) }))
      const lost = await consumer.settle(settlements)
      return leases.length - lost.length
    } finally {
      await consumer.close()
    }
  }
}
