import { toErrorRecord } from '../../src/job/error-record.ts'
import type { TableAccess } from './access.ts'
import { accepted, numberOf, type Row, refused, type ServiceResult, textOf } from './database.ts'
import { refuseHolder } from './leases.ts'
import type { Shape } from './shape.ts'
import { AT, endedAt, epochMs, held, ISO, moment, requeueDelay } from './sql.ts'

export interface FinishDetails {
  /** A short code; stored in `fail_code`. */
  readonly code?: string
  /** Redacted, cut to 2 000 characters and stored in `fail_reason`. */
  readonly reason?: string
  /** False fails the job now, even with attempts left. Default: true. */
  readonly retryable?: boolean
}

export interface FinishedJob {
  readonly id: string
  readonly table: string
  readonly status: 'completed' | 'queued' | 'failed'
  readonly attempt: number
  /** When a requeued job may be claimed. */
  readonly nextEarliestRunAt: Date | null
}

interface Call {
  readonly table: string
  readonly id: string
  /** Null ends the start of any worker. */
  readonly workerId: string | null
  readonly attempt: number | null
  readonly success: boolean
  readonly details: FinishDetails
}

/** Ends the start that holds the lease, if it is the caller's. Row and event are written in one transaction. */
export async function finishJob(access: TableAccess, call: Call): Promise<ServiceResult<FinishedJob>> {
  const { table, id, workerId, attempt, success, details } = call
  if (typeof id !== 'string' || id === '') return refused('invalid_argument', 'the id is empty; give the id of a row')
  if (typeof success !== 'boolean') return refused('invalid_argument', `'success' is ${success}; give true or false`)
  return access.answer(table, 'finishing', async (shape) => {
    const fence = [id, access.now(), workerId, attempt, table]
    const [row] = success
      ? await access.rows(complete(shape), fence)
      : await access.rows(fail(shape), [...fence, ...failure(access, details)])
    return row === undefined ? refuseHolder(access, shape, call) : accepted(finishedJob(table, row))
  })
}

function failure({ settings }: TableAccess, { code, reason, retryable = true }: FinishDetails): unknown[] {
  // toErrorRecord redacts, cuts and makes the text storable.
  const record = toErrorRecord(Object.assign(new Error(String(reason ?? '')), { code: code ?? null }))
  return [
    record.code,
    reason === undefined ? null : record.message,
    retryable,
    settings.backoffBaseMs,
    settings.backoffMaxMs,
  ]
}

function finishedJob(table: string, row: Row): FinishedJob {
  const status = textOf(row, 'status')
  const dueMs = numberOf(row, 'due_ms')
  return {
    id: textOf(row, 'id') ?? '',
    table,
    status: status === 'queued' || status === 'failed' ? status : 'completed',
    attempt: numberOf(row, 'attempt') ?? 0,
    nextEarliestRunAt: dueMs === null ? null : new Date(dueMs),
  }
}

/** The caller need not say who holds the row, and RETURNING has the new owner only (before Postgres 18). */
const picked = (shape: Shape): string => `
picked as (
  select job.id, job.locked_by as holder from ${shape.name} as job
  where job.id = $1 and ${held('$3', '$4')}
  for update of job
)`

const finished = (shape: Shape, table: string, type: string, details: string): string => `
event as (
  insert into ${shape.events} (job_id, data)
  select id, jsonb_build_object('type', ${type}, 'table', ${table}::text,
    'details', jsonb_build_object(${details}'locked_by', holder), 'at', ${ISO})
  from settled
)
select id::text as id, status::text as status, attempt_count::text as attempt, ${epochMs('next_earliest_run_at')} as due_ms
from settled`

const SETTLED = `from picked where job.id = picked.id
  returning job.id, job.status, job.attempt_count, job.next_earliest_run_at, picked.holder::text as holder`

/** Parameters: id, now, worker or null, attempt or null, table. */
const complete = (shape: Shape): string => `
with ${moment('$2')},${picked(shape)},
settled as (
  update ${shape.name} as job
  set status = 'completed', locked_by = null, lease_expires_at = null, fail_code = null, fail_reason = null${endedAt(shape)}
  ${SETTLED}
),${finished(shape, '$5', `'worker:completed'`, '')}`

/**
 * Requeues after a backoff while attempts are left, otherwise fails.
 * Parameters: id, now, worker or null, attempt or null, table, code, reason, may be retried, backoff base and maximum in ms.
 */
const fail = (shape: Shape): string => {
  const again = '($8::boolean and job.attempt_count < job.max_attempts)'
  const type = `case settled.status::text when 'queued' then 'worker:requeued' else 'worker:failed' end`
  return `
with ${moment('$2')},${picked(shape)},
settled as (
  update ${shape.name} as job
  set status = (case when ${again} then 'queued' else 'failed' end)::${shape.statusType},
    locked_by = null, lease_expires_at = null, fail_code = $6, fail_reason = $7,
    next_earliest_run_at = case when ${again} then ${AT} + ${requeueDelay('$9', '$10')} end${endedAt(shape, `case when ${again} then null else ${AT} end`)}
  ${SETTLED}
),${finished(shape, '$5', type, `'reason', $7::text, 'code', $6::text, `)}`
}
