/** What is true of the job tables now, for the doctor and the dashboard. Counting stops at a limit, so that it stays cheap. */
import { EngineError } from '../../src/errors.ts'
import type { TableAccess } from './access.ts'
import { REAPER_SESSION } from './connect.ts'
import { numberOf, type Row, textOf } from './database.ts'
import { COLUMN_NAMES, EVENTS_INDEX, leaseIndexOf, misfitOf } from './migration.ts'
import { queueAge } from './queue.ts'
import { endOfLease } from './reaper-sql.ts'
import { EVENTS_TABLE, qualified, type Shape } from './shape.ts'
import { AT, epochMs, IS_SUPERVISION, moment } from './sql.ts'

/** Beyond it, a count means «at least». */
export const COUNT_MAX = 100_000

export const STATUSES = ['queued', 'processing', 'completed', 'failed'] as const

export interface RowCounts {
  /** By status. */
  readonly counts: Readonly<Record<(typeof STATUSES)[number], number>>
  /** Processing rows whose lease has ended, and that no reaper has taken. */
  readonly stuck: number
  /** How long ago the oldest of these leases ended. */
  readonly stuckMs: number | null
  /** Of the stuck rows, those that the reaper will fail because their attempts are used up. */
  readonly stuckExhausted: number
  /** Of the stuck rows, those that `next_earliest_run_at` holds back from the reaper. */
  readonly stuckHeldBack: number
  /** Processing rows without `lease_expires_at`. */
  readonly leaseless: number
  /** Failed rows whose attempts are used up, and those of them whose worker died or hung. */
  readonly exhausted: number
  readonly timedOut: number
  /** Queued rows whose attempts are used up: a claim starts them once more all the same. */
  readonly overdrawn: number
  readonly due: number
  /** How long the longest-due row has waited. */
  readonly dueMs: number | null
}

export interface TableFacts {
  readonly table: string
  readonly isThere: boolean
  readonly missingColumns: readonly string[]
  /** A column whose type does not fit, and what to do. */
  readonly misfit: string | null
  /** Missing, or left unfinished by CREATE INDEX CONCURRENTLY. */
  readonly missingIndexes: readonly string[]
  /** Null while columns are missing. */
  readonly rows: RowCounts | null
}

export async function readTableFacts(access: TableAccess, table: string): Promise<TableFacts> {
  const columns = await access.columns(table)
  if (columns.size === 0) {
    return { table, isThere: false, missingColumns: [], misfit: null, missingIndexes: [], rows: null }
  }
  const missingColumns = COLUMN_NAMES.filter((name) => !columns.has(name))
  const misfit = misfitOf(table, columns)
  const missingIndexes = await missingIndex(access, table, leaseIndexOf(table))
  const isReadable = missingColumns.length === 0 && misfit === null && (await access.columns(EVENTS_TABLE)).size > 0
  const rows = isReadable ? await access.shaped(table, 'reaping', (shape) => readCounts(access, table, shape)) : null
  return { table, isThere: true, missingColumns, misfit, missingIndexes, rows }
}

async function missingIndex(access: TableAccess, table: string, index: string): Promise<readonly string[]> {
  const found = await access.rows(VALID_INDEX, [qualified(table, access.place.schema), index])
  return found.length > 0 ? [] : [index]
}

async function readCounts(access: TableAccess, table: string, shape: Shape): Promise<RowCounts> {
  const age = await queueAge(access, table)
  if (!age.ok) throw new EngineError('ERR_STORAGE_FAILED', age.error)
  const [row = {}] = await access.rows(countRows(shape), [access.now(), COUNT_MAX, access.settings.leaseSec])
  const count = (name: string): number => numberOf(row, name) ?? 0
  return {
    counts: {
      queued: count('queued'),
      processing: count('processing'),
      completed: count('completed'),
      failed: count('failed'),
    },
    stuck: count('stuck'),
    stuckMs: numberOf(row, 'stuck_ms'),
    stuckExhausted: count('stuck_exhausted'),
    stuckHeldBack: count('stuck_held_back'),
    leaseless: count('leaseless'),
    exhausted: count('exhausted'),
    timedOut: count('timed_out'),
    overdrawn: count('overdrawn'),
    due: age.value.waiting,
    dueMs: age.value.oldestMs,
  }
}

/** A processing row whose lease has ended. */
export interface StuckRow {
  readonly id: string
  readonly lockedBy: string | null
  readonly stage: string | null
  readonly attempt: number
  readonly maxAttempts: number
  readonly endedAtMs: number
}

/** The longest stuck first. */
export async function listStuck(access: TableAccess, table: string, limit: number): Promise<readonly StuckRow[]> {
  return access.shaped(table, 'reaping', async (shape) => {
    const rows = await access.rows(stuckRows(shape), [access.now(), limit, access.settings.leaseSec])
    return rows.map((row) => ({
      id: textOf(row, 'id') ?? '',
      lockedBy: textOf(row, 'locked_by'),
      stage: textOf(row, 'stage'),
      attempt: numberOf(row, 'attempt') ?? 0,
      maxAttempts: numberOf(row, 'attempts_max') ?? 0,
      endedAtMs: numberOf(row, 'ended_ms') ?? 0,
    }))
  })
}

/** What a reaper or an operator did to a row. */
export interface SupervisionEvent {
  readonly jobId: string
  /** Such as `reaper:requeued`. */
  readonly type: string
  readonly table: string
  readonly atMs: number
  readonly lockedBy: string | null
  readonly who: string | null
  readonly reason: string | null
}

export interface ReaperFacts {
  /** Sessions of `millrace reap --every` in this database. */
  readonly sessions: number
  readonly hasEvents: boolean
  /** Null without the index on them: reading all events could take long. */
  readonly recent: readonly SupervisionEvent[] | null
}

export async function readReaperFacts(access: TableAccess, limit: number): Promise<ReaperFacts> {
  const events = qualified(EVENTS_TABLE, access.place.schema)
  const hasEvents = (await access.columns(EVENTS_TABLE)).size > 0
  const [row = {}] = await access.rows(SESSIONS, [REAPER_SESSION])
  const isIndexed = hasEvents && (await missingIndex(access, EVENTS_TABLE, EVENTS_INDEX)).length === 0
  const rows = isIndexed ? await access.rows(recentEvents(events), [access.place.tables, limit]) : null
  return { sessions: numberOf(row, 'sessions') ?? 0, hasEvents, recent: rows?.map(eventOf) ?? null }
}

function eventOf(row: Row): SupervisionEvent {
  return {
    jobId: textOf(row, 'job_id') ?? '',
    type: textOf(row, 'type') ?? '',
    table: textOf(row, 'of_table') ?? '',
    atMs: numberOf(row, 'at_ms') ?? 0,
    lockedBy: textOf(row, 'locked_by'),
    who: textOf(row, 'who'),
    reason: textOf(row, 'reason'),
  }
}

/** Parameters: table, index. */
const VALID_INDEX = `
select 1 from pg_index join pg_class on pg_class.oid = indexrelid
where indrelid = to_regclass($1) and relname = $2 and indisvalid`

/** Parameter: the session's name. */
const SESSIONS = `
select count(*)::text as sessions from pg_stat_activity where application_name = $1 and datname = current_database()`

/** Parameters: tables, limit. */
const recentEvents = (events: string): string => `
select job_id::text as job_id, data ->> 'type' as type, data ->> 'table' as of_table,
  ${epochMs(`(data ->> 'at')::timestamptz`)} as at_ms, data -> 'details' ->> 'locked_by' as locked_by,
  data -> 'details' ->> 'who' as who, data -> 'details' ->> 'reason' as reason
from ${events}
where ${IS_SUPERVISION} and data ->> 'table' = any($1::text[])
order by data ->> 'at' desc limit $2::int`

const isStuck = (): string => `ended_at < ${AT}`

/** Parameters: now, limit of each count, default lease in seconds. */
const countRows = (shape: Shape): string => {
  const some = (columns: string, status: string): string =>
    `(select ${columns} from ${shape.name} as job where job.status = '${status}' limit $2::int)`
  const exhausted = 'attempt_count >= max_attempts'
  return `
with ${moment('$1')},
running as materialized ${some(`job.lease_expires_at, job.attempt_count, job.max_attempts, job.next_earliest_run_at, ${endOfLease(shape, '$3')} as ended_at`, 'processing')},
failed as materialized ${some('job.attempt_count, job.max_attempts, job.fail_code', 'failed')},
queued as materialized ${some('job.attempt_count, job.max_attempts', 'queued')}
select (select count(*) from queued)::text as queued, (select count(*) from running)::text as processing,
  (select count(*) from ${some('1', 'completed')} as completed)::text as completed,
  (select count(*) from failed)::text as failed,
  (select count(*) from running where ${isStuck()})::text as stuck,
  (select ${epochMs(`(${AT} - min(ended_at))`)} from running where ${isStuck()}) as stuck_ms,
  (select count(*) from running where ${isStuck()} and ${exhausted})::text as stuck_exhausted,
  (select count(*) from running where ${isStuck()} and not ${exhausted} and next_earliest_run_at > ${AT})::text
    as stuck_held_back,
  (select count(*) from running where lease_expires_at is null)::text as leaseless,
  (select count(*) from failed where ${exhausted})::text as exhausted,
  (select count(*) from failed where ${exhausted} and fail_code = 'timeout')::text as timed_out,
  (select count(*) from queued where ${exhausted})::text as overdrawn`
}

/** Parameters: now, limit, default lease in seconds. */
const stuckRows = (shape: Shape): string => `
with ${moment('$1')},
running as (
  select job.id, job.locked_by, job.stage, job.attempt_count, job.max_attempts, ${endOfLease(shape, '$3')} as ended_at
  from ${shape.name} as job where job.status = 'processing'
)
select id::text as id, locked_by::text as locked_by, stage::text as stage, attempt_count::text as attempt,
  max_attempts::text as attempts_max, ${epochMs('ended_at')} as ended_ms
from running where ${isStuck()} order by ended_at limit $2::int`
