import type { Lease } from '../../engine/outcome.ts'
import type { ErrorRecord, JobView, StoredJob, StoredOptions, Tenant } from '../../job/job.ts'
import { readPredecessors } from '../../job/predecessors.ts'
import { type Ended, type StoredState, shownState } from '../../job/states.ts'
import { tagsOf } from '../../job/tags.ts'
import { fromIso } from '../../time/iso.ts'

/** A job as the claim reads it. */
export interface JobRow {
  readonly rowid: number
  readonly id: string
  readonly type: string
  readonly priority: number
  readonly scheduled_at: string
  readonly payload: string
  readonly payload_version: number
  readonly attempts: number
  readonly max_retries: number
  readonly created_at: string
  readonly idempotency_key: string | null
  readonly latest_key: string | null
  readonly tenant: string | null
  readonly options: string | null
  readonly predecessors: string | null
}

/** The same as an array, in the order of JOB_COLUMNS in fragments.ts. */
export type JobColumns = [
  rowid: number,
  id: string,
  type: string,
  priority: number,
  scheduledAt: string,
  payload: string,
  payloadVersion: number,
  attempts: number,
  maxRetries: number,
  createdAt: string,
  key: string | null,
  latestKey: string | null,
  tenant: string | null,
  options: string | null,
  predecessors: string | null,
]

/**
 * A class, as those of the job and the lease below are: V8 counts how many objects of a literal survive, and a claimed batch
 * does as a whole. It then made all later ones, with what they refer to, among its old objects, which only a full collection
 * frees.
 */
class ClaimedRow implements JobRow {
  readonly rowid: number
  readonly id: string
  readonly type: string
  readonly priority: number
  readonly scheduled_at: string
  readonly payload: string
  readonly payload_version: number
  readonly attempts: number
  readonly max_retries: number
  readonly created_at: string
  readonly idempotency_key: string | null
  readonly latest_key: string | null
  readonly tenant: string | null
  readonly options: string | null
  readonly predecessors: string | null

  constructor(columns: JobColumns) {
    this.rowid = columns[0]
    this.id = columns[1]
    this.type = columns[2]
    this.priority = columns[3]
    this.scheduled_at = columns[4]
    this.payload = columns[5]
    this.payload_version = columns[6]
    this.attempts = columns[7]
    this.max_retries = columns[8]
    this.created_at = columns[9]
    this.idempotency_key = columns[10]
    this.latest_key = columns[11]
    this.tenant = columns[12]
    this.options = columns[13]
    this.predecessors = columns[14]
  }
}

export function toJobRow(columns: JobColumns): JobRow {
  return new ClaimedRow(columns)
}

export interface ExpiredRow extends JobRow {
  readonly lease_owner: string | null
  readonly started_at: string | null
}

export interface ViewRow extends ExpiredRow {
  readonly status: StoredState
  readonly ended: Ended | null
  readonly progress: string | null
  readonly result: string | null
  readonly error: string | null
  readonly error_record: string | null
  readonly lease_until: string | null
  readonly updated_at: string
  readonly completed_at: string | null
  readonly completed_by: string | null
  readonly duration_ms: number | null
  readonly released_key: string | null
  readonly latest_seq: number | null
  readonly replays: number
}

/** The stored token and its row. The rowid saves an index lookup on the hot path. */
export interface Fence {
  readonly rowid: number
  readonly token: string
}

/** A token that no claim made matches no row. */
export function fromLeaseToken(token: string): Fence {
  const colon = token.indexOf(':')
  return { rowid: Number(token.slice(0, colon)), token: token.slice(colon + 1) }
}

class RowJob implements StoredJob {
  readonly id: string
  readonly type: string
  readonly payload: string
  readonly payloadVersion: number
  readonly priority: number
  readonly attempts: number
  readonly createdAtMs: number
  readonly runAtMs: number
  readonly key: string | null
  readonly latestKey: string | null
  readonly tenant: Tenant | null
  readonly options: StoredOptions | null
  readonly after: StoredJob['after']

  constructor(row: JobRow) {
    this.id = row.id
    this.type = row.type
    this.payload = row.payload
    this.payloadVersion = row.payload_version
    this.priority = row.priority
    this.attempts = row.max_retries
    this.createdAtMs = fromIso(row.created_at)
    this.runAtMs = fromIso(row.scheduled_at)
    this.key = row.idempotency_key
    this.latestKey = row.latest_key
    this.tenant = row.tenant === null ? null : parse<Tenant | null>(row.tenant, null)
    this.options = row.options === null ? null : parse<StoredOptions | null>(row.options, null)
    this.after = row.predecessors === null ? null : readPredecessors(parse<unknown>(row.predecessors, null))
  }
}

class RowLease implements Lease {
  readonly job: StoredJob
  readonly attempt: number
  readonly token: string
  readonly expiresAtMs: number

  constructor(job: StoredJob, attempt: number, token: string, expiresAtMs: number) {
    this.job = job
    this.attempt = attempt
    this.token = token
    this.expiresAtMs = expiresAtMs
  }
}

export function toLease(row: JobRow, attempt: number, token: string, expiresAtMs: number): Lease {
  return new RowLease(new RowJob(row), attempt, `${row.rowid}:${token}`, expiresAtMs)
}

export function toView(row: ViewRow): JobView {
  return {
    ...new RowJob(row),
    key: row.idempotency_key ?? row.released_key,
    state: shownState(row.status, row.ended),
    attempt: row.attempts,
    tags: row.options === null ? [] : tagsOf(parse<StoredOptions | null>(row.options, null)),
    replays: row.replays,
    progress: parse<unknown>(row.progress, null),
    result: parse<unknown>(row.result, null),
    error: toErrorRecord(row),
    leaseOwner: row.lease_owner,
    leaseUntilMs: toMs(row.lease_until),
    updatedAtMs: fromIso(row.updated_at),
    startedAtMs: toMs(row.started_at),
    completedAtMs: toMs(row.completed_at),
    durationMs: row.duration_ms,
  }
}

export function toMs(text: string | null): number | null {
  return text === null ? null : fromIso(text)
}

/** Another program may have written only the text. */
function toErrorRecord(row: ViewRow): ErrorRecord | null {
  if (row.error === null) return null
  return parse<ErrorRecord>(row.error_record, { name: 'Error', code: null, message: row.error, stack: null })
}

/** Another program may have written anything. Text that is not JSON counts as absent. */
export function parse<T>(text: string | null, otherwise: T): T {
  if (text === null) return otherwise
  try {
    return JSON.parse(text) as T
  } catch {
    return otherwise
  }
}

/** Parts of SQL that several statements share. Values are parameters; `:now` comes from the injected clock. */

/** The columns that a worker needs. `JobColumns` in rows.ts has the same order. */
export const JOB_COLUMNS = `rowid, id, type, priority, scheduled_at, payload, payload_version, attempts, max_retries, created_at,
  idempotency_key, latest_key, tenant, options, predecessors`

/** The fence: a late holder must not change a job that has a new token or whose lease ran out. */
export const HELD = `id = :id AND lease_token = :token AND status = 'in_progress' AND lease_until > :now`

/** Ends a lease. Every statement that takes a job from its holder contains it. */
export const UNLEASED = `lease_owner = NULL, lease_until = NULL, lease_token = NULL, updated_at = :now`

/** Frees the idempotency key for the next job and keeps it for a replay. */
export const KEY_RELEASED = `released_key = coalesce(idempotency_key, released_key), idempotency_key = NULL`

export const VIEW_COLUMNS = `${JOB_COLUMNS}, status, ended, progress, result, error, error_record, lease_owner, lease_until,
  updated_at, started_at, completed_at, completed_by, duration_ms, released_key, latest_seq, replays`
