import { toEngineError } from '../../src/engines/postgres/faults.ts'
import type { Log } from '../../src/job/definition.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type AccessOptions, TableAccess } from './access.ts'
import { type Database, numberOf, type Row, textOf, withRetries } from './database.ts'
import { queueAge } from './queue.ts'
import { noMetrics, type ReaperMetrics, type Republish, reportTo } from './reaper-report.ts'
import type { TableSettings } from './settings.ts'
import type { JobTable, Shape } from './shape.ts'
import { AT, endedAt, epochMs, ISO, moment, requeueDelay } from './sql.ts'

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

/** The letters MILL: tells our advisory locks from others in the same database. */
const LOCK_CLASS = 0x4d494c4c

/**
 * One pass over a table at a time. The lock ends with the statement, so it works behind a pooler in transaction mode; a
 * session's lock would stay with the connection.
 */
const singleton = (key: string): string =>
  `singleton as materialized (select pg_try_advisory_xact_lock(${LOCK_CLASS}, ${key}::int) as held)`

/** The last sign of life of a row without a lease. */
function lastSign({ hasUpdatedAt, hasCreatedAt }: Shape): string {
  const others = [hasUpdatedAt ? 'job.updated_at' : null, hasCreatedAt ? 'job.created_at' : null]
  return `coalesce(${['job.last_heartbeat_at', ...others.filter((column) => column !== null)].join(', ')})`
}

/** A row without a lease counts as expired after a default lease without a sign of life. */
function expired(shape: Shape, lease: string): string {
  return `job.status = 'processing' and (job.lease_expires_at < ${AT} or (job.lease_expires_at is null
      and ${lastSign(shape)} < ${AT} - make_interval(secs => ${lease}::float8)))`
}

/** One pass in one transaction: pick unlocked rows, change them and write their events. */
function pass(shape: Shape, parts: { condition: string; change: string; event: string }): string {
  return `
with ${moment('$1')}, ${singleton('$2')},
picked as (
  select job.id, job.locked_by, job.stage
  from ${shape.name} as job
  where (select held from singleton) and ${expired(shape, '$4')} and ${parts.condition}
  order by job.lease_expires_at
  limit $3::int
  for update of job skip locked
),
reaped as (
  update ${shape.name} as job
  set locked_by = null, lease_expires_at = null, ${parts.change}
  from picked
  where job.id = picked.id
  returning job.id, picked.locked_by, picked.stage, job.attempt_count, job.next_earliest_run_at
),
event as (
  insert into ${shape.events} (job_id, data)
  select id, jsonb_build_object('type', '${parts.event}', 'table', $5::text,
    'details', jsonb_build_object('reason', 'lease_expired', 'locked_by', locked_by), 'at', ${ISO})
  from reaped
)
select singleton.held::text as held, reaped.id::text as id, reaped.locked_by::text as locked_by,
  reaped.stage::text as stage, reaped.attempt_count::text as attempt,
  ${epochMs('reaped.next_earliest_run_at')} as due_ms
from singleton left join reaped on true`
}

/** Parameters: now, lock key, limit, default lease in seconds, table, backoff base and maximum in ms. */
const requeueExpired = (shape: Shape): string =>
  pass(shape, {
    condition: `job.attempt_count < job.max_attempts
    and (job.next_earliest_run_at is null or job.next_earliest_run_at <= ${AT})`,
    change: `status = 'queued', next_earliest_run_at = ${AT} + ${requeueDelay('$6', '$7')}`,
    event: 'reaper:requeued',
  })

/** Parameters: now, lock key, limit, default lease in seconds, table. */
const failExpired = (shape: Shape): string =>
  pass(shape, {
    condition: 'job.attempt_count >= job.max_attempts',
    change: `status = 'failed', fail_code = 'timeout', fail_reason = 'lease_expired'${endedAt(shape)}`,
    event: 'reaper:failed(timeout)',
  })

/**
 * A processing row without any timestamp would never expire. It gets a heartbeat now, and expires a default lease later.
 * Parameters: now, limit.
 */
const adoptTimeless = (shape: Shape): string => `
with ${moment('$1')},
picked as (
  select job.id from ${shape.name} as job
  where job.status = 'processing' and job.lease_expires_at is null and ${lastSign(shape)} is null
  limit $2::int
  for update of job skip locked
)
update ${shape.name} as job set last_heartbeat_at = ${AT}
from picked where job.id = picked.id
returning job.id::text as id`
