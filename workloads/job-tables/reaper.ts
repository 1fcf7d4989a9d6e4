import { toEngineError } from '../../src/engines/postgres/faults.ts'
import type { Log } from '../../src/job/definition.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type AccessOptions, TableAccess } from './access.ts'
import { type Database, numberOf, type Row, textOf, withRetries } from './database.ts'
import { queueAge } from './queue.ts'
import { noMetrics, type ReaperMetrics, type Republish, reportTo, STAGE_ALL, STAGE_UNKNOWN } from './reaper-report.ts'
import { adoptTimeless, failExpired, requeueExpired, runningStages } from './reaper-sql.ts'
import type { TableSettings } from './settings.ts'
import type { JobTable, Shape } from './shape.ts'

/** What one run did, over all tables. `onReaped` and the log tell the tables apart. */
export interface ReaperResult {
  readonly requeuedIds: string[]
  readonly failedIds: string[]
}

/** What happened to one job, reported after the commit. */
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
  /** Hands a requeued job to your dispatcher. A failure is only logged: the row is the source of truth. */
  readonly republish?: Republish
  readonly onReaped?: (reaped: Reaped) => void
}

/** The rows of one statement, so that a transaction stays short. */
export const PASS_MAX = 500

/** More stages than that are free text, which makes no good tags. */
const STAGES_MAX = 100

const nothing = (): void => {}
const silent: Log = Object.freeze({ debug: nothing, info: nothing, warn: nothing, error: nothing })

type Action = Reaped['action']
type StatementOf = (shape: Shape) => string

/** Requeues or fails the jobs whose leases have ended. An instance may be shared; its runs do not overlap. */
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
   * One run over all tables, in order. If a table fails, the others still get their turn, and the run rejects with the
   * first failure. Rows that were changed stay committed, with their events.
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
    await this.#announce(table, signal)
    const requeued = await this.#empty(table, 'requeued', requeueExpired, signal)
    const failed = await this.#empty(table, 'failed', failExpired, signal)
    await this.#adopt(table, signal)
    result.requeuedIds.push(...requeued)
    result.failedIds.push(...failed)
    const durationMs = this.clock.monotonicMs() - startedAtMs
    this.#metrics.measure('reaper.scan_duration_ms', durationMs, { table, stage: STAGE_ALL })
    const counts = { requeued: requeued.length, failed: failed.length }
    this.log.debug('Reaper scanned', { table, ...counts, duration_ms: durationMs })
    await this.#measureAge(table)
  }

  /** Repeats passes until one is not full. Locked rows are left for the next run. */
  async #empty(table: string, action: Action, statementOf: StatementOf, signal?: AbortSignal): Promise<string[]> {
    const ids: string[] = []
    for (;;) {
      const rows = await this.#retried(table, signal, (shape) =>
        this.#access.rows(statementOf(shape), this.#parameters(shape, table, action)),
      )
      if (textOf(rows[0] ?? {}, 'held') !== 'true') {
        this.log.info('Another reaper is running', { table })
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
    // An oid is an unsigned 32-bit number, the lock's key a signed one.
    const shared = [this.#access.now(), shape.oid | 0, PASS_MAX, leaseSec, table]
    return action === 'requeued' ? [...shared, backoffBaseMs, backoffMaxMs] : shared
  }

  async #adopt(table: string, signal?: AbortSignal): Promise<void> {
    const rows = await this.#retried(table, signal, (shape) =>
      this.#access.rows(adoptTimeless(shape), [this.#access.now(), PASS_MAX]),
    )
    for (const row of rows) {
      this.log.warn('Job without a lease or timestamp; it expires after the default lease', {
        table,
        job_id: textOf(row, 'id'),
        lease_sec: this.settings.leaseSec,
      })
    }
  }

  /** Before anything is counted, so that the first count of a stage is seen as a change from 0. */
  async #announce(table: string, signal?: AbortSignal): Promise<void> {
    if (this.#metrics.announce === undefined) return
    const rows = await this.#retried(table, signal, (shape) => this.#access.rows(runningStages(shape), [STAGES_MAX]))
    for (const stage of [STAGE_UNKNOWN, ...rows.map((row) => textOf(row, 'stage') ?? STAGE_UNKNOWN)])
      this.#metrics.announce({ table, stage })
  }

  /** Shows when no worker claims the requeued jobs. */
  async #measureAge(table: string): Promise<void> {
    const age = await queueAge(this.#access, table)
    if (!age.ok) this.log.warn('The queue age could not be read', { table, error: age.error })
    else this.#metrics.measure('reaper.queue_age_ms', age.value.oldestMs ?? 0, { table })
  }

  /** A pass is safe to repeat: rows that it changed no longer match. */
  #retried<Answer>(table: string, signal: AbortSignal | undefined, work: (shape: Shape) => Promise<Answer>) {
    return withRetries(() => this.#access.shaped(table, 'reaping', work), {
      clock: this.clock,
      ...(signal === undefined ? {} : { signal }),
      onRetry: (error, delayMs) =>
        this.log.warn('Reaper retries', {
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
