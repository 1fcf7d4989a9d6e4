import { parse, type ViewRow } from '../../../src/engines/sqlite/rows.ts'
import { type NewJob, newJobId } from '../../../src/job/job.ts'
import type { OptionNames } from '../../../src/job/known-options.ts'
import {
  ATTEMPTS_DEFAULT,
  checkAttempts,
  checkKey,
  checkPriority,
  checkType,
  PRIORITY_DEFAULT,
} from '../../../src/job/options.ts'
import { encodeUnchecked } from '../../../src/job/payload.ts'
import { type JobState, shownState } from '../../../src/job/states.ts'
import { CONVERSATION_JOBS, type JobFigures } from '../jobs/contract.ts'

/** A row of `job_queue`. Times are ISO-8601 in UTC. */
export interface Job {
  readonly id: string
  readonly type: string
  /** `cancelled`, `superseded` and `discarded` are stored as `dead_letter`, but are no dead letters. */
  readonly status: JobState
  /** 1 is the most urgent, 10 the least. */
  readonly priority: number
  readonly scheduled_at: string
  readonly lease_owner: string | null
  readonly lease_until: string | null
  readonly payload: unknown
  /** Also of a finished job, although another job may use the key by then. */
  readonly idempotency_key: string | null
  /** Starts so far. */
  readonly attempts: number
  /** Starts in total. */
  readonly max_retries: number
  /** What the last failed attempt said. */
  readonly error: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly started_at: string | null
  readonly completed_at: string | null
  readonly result: unknown
}

/** What an operator may see of a dead letter: everything but the payload. */
export type DeadLetterSummary = Pick<Job, 'id' | 'type' | 'attempts' | 'error' | 'created_at' | 'completed_at'>

/** Text that is no JSON, which another program may have written, stays text. */
export function toJob(row: ViewRow): Job {
  return {
    id: row.id,
    type: row.type,
    status: shownState(row.status, row.ended),
    priority: row.priority,
    scheduled_at: row.scheduled_at,
    lease_owner: row.lease_owner,
    lease_until: row.lease_until,
    payload: parse<unknown>(row.payload, row.payload),
    idempotency_key: row.idempotency_key ?? row.released_key,
    attempts: row.attempts,
    max_retries: row.max_retries,
    error: row.error,
    created_at: row.created_at,
    updated_at: row.updated_at,
    started_at: row.started_at,
    completed_at: row.completed_at,
    result: parse<unknown>(row.result, row.result),
  }
}

export function toSummary({ id, type, attempts, error, created_at, completed_at }: Job): DeadLetterSummary {
  return { id, type, attempts, error, created_at, completed_at }
}

export interface CreateJob {
  readonly type: string
  readonly payload: unknown
  readonly idempotency_key?: string
  /** Default: that of the pipeline's job of this type, otherwise 5. */
  readonly priority?: number
  /** Default: that of the pipeline's job of this type, otherwise 3. */
  readonly max_retries?: number
}

export const CREATE_NAMES: OptionNames<CreateJob> = {
  type: true,
  payload: true,
  idempotency_key: true,
  priority: true,
  max_retries: true,
}

export function newJobOf(
  { type, payload, idempotency_key: key, priority, max_retries: attempts }: CreateJob,
  nowMs: number,
): NewJob {
  checkType(type)
  const figures: JobFigures | undefined = Object.hasOwn(CONVERSATION_JOBS, type)
    ? Reflect.get(CONVERSATION_JOBS, type)
    : undefined
  return {
    id: newJobId(nowMs),
    type,
    payload: encodeUnchecked(type, payload),
    payloadVersion: 1,
    priority: checkPriority(priority ?? figures?.priority ?? PRIORITY_DEFAULT),
    attempts: checkAttempts(attempts ?? figures?.attempts ?? ATTEMPTS_DEFAULT),
    delayMs: 0,
    runAtMs: null,
    key: key === undefined ? null : checkKey(key, 'key'),
    latest: null,
    tenant: null,
    options: null,
    after: null,
  }
}
