import type { Log } from '../../../job/definition.ts'
import { type Clock, systemClock } from '../../../time/clock.ts'
import { toEngineError } from '../faults.ts'
import { type AccessOptions, TableAccess } from './access.ts'
import { type Database, numberOf, type Row, textOf } from './database.ts'
import type { TableSettings } from './environment.ts'
import { withRetries } from './faults.ts'
import type { JobTable } from './job-table.ts'
import { noMetrics, type ReaperMetrics } from './metrics.ts'
import { queueAge } from './queue.ts'
import { type Republish, reportTo } from './report.ts'
import type { Shape } from './shape.ts'
import { adoptTimeless, failExpired, requeueExpired } from './statements.ts'

/** What one run did (E08). Ids of both tables stand side by side; `onReaped` and the log say which is whose. */
export interface ReaperResult {
  readonly requeuedIds: string[]
  readonly failedIds: string[]
}

/** What happened to one job, told after it was committed. */
export interface Reaped {
  readonly action: 'requeued' | 'failed'
  readonly table: string
  readonly id: string
  readonly stage: string | null
  /** The worker that held the job last. */
  readonly lockedBy: string | null
  readonly attempt: number
  /** When a requeued job may be claimed. */
  readonly nextEarliestRunAt: Date | null
}

export interface ReaperOptions<Table extends string = JobTable> extends AccessOptions<Table> {
  readonly clock?: Clock
  readonly log?: Log
  readonly metrics?: ReaperMetrics
  /** Hands a requeued job to a dispatcher of your own. The row stays the truth: a failure here is only logged (X189). */
  readonly republish?: Republish
  readonly onReaped?: (reaped: Reaped) => void
}

/** Rows that one statement takes at most: a transaction stays short however many leases have expired (X183). */
export const PASS_MAX = 500

const nothing = (): void => {}
const silent: Log = Object.freeze({ debug: nothing, info: nothing, warn: nothing, error: nothing })

type Action = Reaped['action']
type StatementOf = (shape: Shape) => string

/** Requeues or fails the jobs whose leases have ended (document E). One instance may be shared; runs do not overlap. */
export class Reaper {
  readonly settings: TableSettings
  readonly clock: Clock
  readonly log: Log
  readonly #access: TableAccess
  readonly #metrics: ReaperMetrics
  readonly #report: (reaped: Reaped) => Promise<void>
  #running: Promise<ReaperResult> | null = null

  constructor(database: Database, options: ReaperOptions<string> = {}) {
    this.#access = new TableAccess(database, options)
    this.settings = this.#access.settings
    this.clock = options.clock ?? systemClock
    this.log = options.log ?? silent
    this.#metrics = options.metrics ?? noMetrics
    this.#report = reportTo({ log: this.log, metrics: this.#metrics, ...options })
  }

  /**
   * One run over all tables, in their order (E33). A table that fails does not keep the others from their turn; then the
   * run rejects with the first failure. What was done until then is committed, with its events.
   */
  runOnce(signal?: AbortSignal): Promise<ReaperResult> {
    this.#running ??= this.#run(signal).finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #run(signal?: AbortSignal): Promise<ReaperResult> {
    const result: ReaperResult = { requeuedIds: [], failedIds: [] }
    const failures: unknown[] = []
    for (const table of this.#access.place.tables) {
      if (signal?.aborted === true) break
      try {
        await this.#scan(table, result, signal)
      } catch (error) {
        failures.push(error)
        this.log.error('Reaper could not scan', { table, error: toEngineError(error, 'reaping').message })
      }
    }
    if (failures.length > 0) throw toEngineError(failures[0], 'reaping')
    return result
  }

  async #scan(table: string, result: ReaperResult, signal?: AbortSignal): Promise<void> {
    const startedAtMs = this.clock.monotonicMs()
    const requeued = await this.#empty(table, 'requeued', requeueExpired, signal)
    const failed = await this.#empty(table, 'failed', failExpired, signal)
    await this.#adopt(table, signal)
    result.requeuedIds.push(...requeued)
    result.failedIds.push(...failed)
    const durationMs = this.clock.monotonicMs() - startedAtMs
    this.#metrics.measure('reaper.scan_duration_ms', durationMs, { table })
    const counts = { requeued: requeued.length, failed: failed.length }
    this.log.debug('Reaper scanned', { table, ...counts, duration_ms: durationMs })
    await this.#measureAge(table)
  }

  /** Passes until one finds less than it could take. Rows that somebody holds locked are left for the next run (E39). */
  async #empty(table: string, action: Action, statementOf: StatementOf, signal?: AbortSignal): Promise<string[]> {
    const ids: string[] = []
    for (;;) {
      const rows = await this.#retried(table, signal, (shape) =>
        this.#access.rows(statementOf(shape), this.#parameters(shape, table, action)),
      )
      if (textOf(rows[0] ?? {}, 'held') !== 'true') {
        this.log.info('Another reaper is at work', { table })
        return ids
      }
      const reaped = rows.filter((row) => textOf(row, 'id') !== null).map((row) => reapedOf(table, action, row))
      for (const one of reaped) {
        ids.push(one.id)
        await this.#report(one)
      }
      if (reaped.length < PASS_MAX || signal?.aborted === true) return ids
    }
  }

  #parameters(shape: Shape, table: string, action: Action): unknown[] {
    const { leaseSec, backoffBaseMs, backoffMaxMs } = this.settings
    // An oid has 32 bits without a sign, the lock's key 32 with one.
    const shared = [this.#access.now(), shape.oid | 0, PASS_MAX, leaseSec, table]
    return action === 'requeued' ? [...shared, backoffBaseMs, backoffMaxMs] : shared
  }

  async #adopt(table: string, signal?: AbortSignal): Promise<void> {
    const rows = await this.#retried(table, signal, (shape) =>
      this.#access.rows(adoptTimeless(shape), [this.#access.now(), PASS_MAX]),
    )
    for (const row of rows) {
      this.log.warn('Job without a lease or any time seen; it expires a default lease from now', {
        table,
        job_id: textOf(row, 'id'),
        lease_sec: this.settings.leaseSec,
      })
    }
  }

  /** X190: expired jobs that were requeued are of no use when nobody claims them. */
  async #measureAge(table: string): Promise<void> {
    const age = await queueAge(this.#access, table)
    if (!age.ok) this.log.warn('The age of the queue could not be read', { table, error: age.error })
    else this.#metrics.measure('reaper.queue_age_ms', age.value.oldestMs ?? 0, { table })
  }

  /** A pass may be repeated: what the first try did, if it did, no longer matches. */
  #retried<Answer>(table: string, signal: AbortSignal | undefined, work: (shape: Shape) => Promise<Answer>) {
    return withRetries(() => this.#access.shaped(table, 'reaping', work), {
      clock: this.clock,
      ...(signal === undefined ? {} : { signal }),
      onRetry: (error, delayMs) =>
        this.log.warn('Reaper tries again', {
          table,
          delay_ms: delayMs,
          error: toEngineError(error, 'reaping').message,
        }),
    })
  }
}

function reapedOf(table: string, action: Action, row: Row): Reaped {
  const dueMs = numberOf(row, 'due_ms')
  return {
    action,
    table,
    id: textOf(row, 'id') ?? '',
    stage: textOf(row, 'stage'),
    lockedBy: textOf(row, 'locked_by'),
    attempt: numberOf(row, 'attempt') ?? 0,
    nextEarliestRunAt: action === 'failed' || dueMs === null ? null : new Date(dueMs),
  }
}
