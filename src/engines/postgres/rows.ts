import type { Lease } from '../../engine/outcome.ts'
import { UnsupportedError } from '../../errors.ts'
import { effectiveRank } from '../../job/ageing.ts'
import type { ErrorRecord, JobView, NewJob, StoredJob, StoredOptions, Tenant } from '../../job/job.ts'
import { readPredecessors } from '../../job/predecessors.ts'
import { type Ended, type StoredState, shownState } from '../../job/states.ts'
import { tagsOf } from '../../job/tags.ts'

/** A job as the claim reads it. Another program may have written the row, so some columns may be null. */
export interface JobRow {
  readonly id: string
  readonly type: string | null
  readonly payload: string | null
  readonly payload_version: number
  readonly priority: number
  readonly attempt_count: number
  readonly max_attempts: number
  readonly created_ms: number
  readonly run_ms: number
  readonly arrival: number | null
  readonly idempotency_key: string | null
  readonly latest_key: string | null
  readonly tenant: Tenant | null
  readonly options: StoredOptions | null
  readonly after: unknown
  readonly expires_ms: number | null
  /** Its ctid, valid until the row changes. */
  readonly place: string
}

/** A row of `plainColumns` in claim.ts: null where the value is the usual one. */
export type PlainRow = readonly [
  id: string,
  payload: string | null,
  place: string,
  priority: number,
  attempts: number | null,
  attemptsMax: number | null,
  version: number | null,
  createdMs: number,
  runMs: number | null,
  arrival: number | null,
  key: string | null,
  latestKey: string | null,
  tenant: Tenant | null,
  options: StoredOptions | null,
  after: unknown,
]

export function fromPlain(row: PlainRow, type: string, expiresMs: number): JobRow {
  const createdMs = row[7]
  return {
    id: row[0],
    type,
    payload: row[1],
    payload_version: row[6] ?? 1,
    priority: row[3],
    attempt_count: row[4] ?? 1,
    max_attempts: row[5] ?? 3,
    created_ms: createdMs,
    run_ms: row[8] ?? createdMs,
    arrival: row[9],
    idempotency_key: row[10],
    latest_key: row[11],
    tenant: row[12],
    options: row[13],
    after: row[14],
    expires_ms: expiresMs,
    place: row[2],
  }
}

export interface ViewRow extends JobRow {
  readonly status: string
  readonly ended: Ended | null
  readonly progress: unknown
  readonly result: unknown
  readonly fail_code: string | null
  readonly fail_reason: string | null
  readonly error_record: ErrorRecord | null
  readonly locked_by: string | null
  readonly updated_ms: number
  readonly started_ms: number | null
  readonly completed_ms: number | null
  readonly completed_by: string | null
  readonly duration_ms: number | null
  readonly latest_seq: number | null
  readonly replays: number
}

export function toStoredJob(row: JobRow): StoredJob {
  return {
    id: row.id,
    type: row.type ?? '',
    payload: row.payload ?? 'null',
    payloadVersion: row.payload_version,
    priority: row.priority,
    attempts: row.max_attempts,
    createdAtMs: toTime(row.created_ms),
    runAtMs: toTime(row.run_ms),
    key: row.idempotency_key,
    latestKey: row.latest_key,
    tenant: isRecord(row.tenant) ? row.tenant : null,
    options: isRecord(row.options) ? row.options : null,
    after: row.after === null ? null : readPredecessors(row.after),
  }
}

/** Includes the key that a finished job gave up; see RELEASE_KEYS. */
export function keyOf(row: JobRow): string | null {
  return row.idempotency_key ?? (isRecord(row.options) ? row.options.releasedKey : null) ?? null
}

/** Another program may have written any JSON. What is not an object counts as absent. */
function isRecord<Value extends object>(value: Value | null): value is Value {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The latest time of a Date: `infinity` is a time in Postgres but not in JavaScript. */
const TIME_MAX_MS = 8.64e15

function toTime(ms: number): number {
  return Math.max(-TIME_MAX_MS, Math.min(TIME_MAX_MS, ms))
}

/** Rows of one claim share the stored token. With the id it is unique. */
export function toLease(row: JobRow, fence: string): Lease {
  const token = `${fence}~${row.place}.${row.id}`
  return { job: toStoredJob(row), attempt: row.attempt_count, token, expiresAtMs: row.expires_ms }
}

export interface Fence {
  /** The stored part of a lease's token. */
  readonly token: string
  /** The ctid that the claim gave the row. */
  readonly place: string
}

/** A token that no claim made matches no row. */
export function fenceOf({ token, job }: Lease): Fence {
  const end = token.length - job.id.length - 1
  const middle = token.lastIndexOf('~', end)
  if (middle < 0 || !token.endsWith(job.id)) return { token: '', place: '(0,0)' }
  return { token: token.slice(0, middle), place: token.slice(middle + 1, end) }
}

/** The table has the words of the job tables. A row with any other word is never run. */
export function toState(status: string): StoredState {
  switch (status) {
    case 'queued':
    case 'completed':
      return status
    case 'processing':
      return 'in_progress'
    case 'failed':
      return 'dead_letter'
    default:
      return 'failed'
  }
}

/** The word in the table for a state; null when no row can be in it. */
export function toStatus(state: StoredState): string | null {
  switch (state) {
    case 'queued':
    case 'completed':
      return state
    case 'in_progress':
      return 'processing'
    case 'dead_letter':
      return 'failed'
    case 'failed':
      return null
    default:
      state satisfies never
      return null
  }
}

export function toView(row: ViewRow): JobView {
  return {
    ...toStoredJob(row),
    key: keyOf(row),
    state: shownState(toState(row.status), row.ended),
    attempt: row.attempt_count,
    tags: isRecord(row.options) ? tagsOf(row.options) : [],
    replays: row.replays,
    progress: row.progress ?? null,
    result: row.result ?? null,
    error: toErrorRecord(row),
    leaseOwner: row.locked_by,
    leaseUntilMs: row.expires_ms === null ? null : toTime(row.expires_ms),
    updatedAtMs: toTime(row.updated_ms),
    startedAtMs: row.started_ms === null ? null : toTime(row.started_ms),
    completedAtMs: row.completed_ms === null ? null : toTime(row.completed_ms),
    durationMs: row.duration_ms,
  }
}

/** The reaper of the job tables and other programs write only the short form. */
function toErrorRecord(row: ViewRow): ErrorRecord | null {
  if (row.error_record !== null) return row.error_record
  if (row.fail_code === null && row.fail_reason === null) return null
  return { name: 'Error', code: row.fail_code, message: row.fail_reason ?? row.fail_code ?? '', stack: null }
}

/**
 * Jobs with ids that the table can hold. ULIDs and UUIDs both have 128 bits, so in a table with ids of type uuid a job gets
 * the UUID of the same bits, and repeating an enqueue stays harmless.
 */
export function withIds(jobs: readonly NewJob[], idType: string): readonly NewJob[] {
  if (idType === 'text' || idType === 'character varying') return jobs
  if (idType !== 'uuid') {
    const limit = `cannot give ids of type ${idType}; insert rows into the table yourself, workers run them`
    const [job] = jobs
    throw new UnsupportedError({ ...(job !== undefined && { job: job.type }), engine: 'postgres', limit })
  }
  return jobs.map((job) => ({
    ...job,
    id: toUuid(job.id),
    after: job.after === null ? null : { ...job.after, ids: job.after.ids.map(toUuid) },
  }))
}

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** An id that is not a ULID stays as it is. The server refuses it unless it is a UUID. */
function toUuid(id: string): string {
  if (!isUlid(id)) return id
  let bits = 0n
  for (const digit of id) bits = bits * 32n + BigInt(DIGITS.indexOf(digit))
  const hex = bits.toString(16).padStart(32, '0')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

function isUlid(id: string): boolean {
  return /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)
}

/** The order of a claim. */
export function byUrgency(one: JobRow, other: JobRow): number {
  return one.priority === other.priority ? byDue(one, other) : one.priority - other.priority
}

/** The same with ageing, as of the claim by the server's clock: the end of a lease tells it. `leaseMs` is by type. */
export function byAgedUrgency(leaseMs: ReadonlyMap<string | null, number>, ageingMs: number): typeof byUrgency {
  const rankOf = ({ type, priority, run_ms: runMs, expires_ms: expiresMs }: JobRow): number =>
    effectiveRank(priority, (expiresMs ?? 0) - (leaseMs.get(type) ?? 0) - runMs, ageingMs)
  return (one, other) => rankOf(one) - rankOf(other) || byDue(one, other)
}

function byDue(one: JobRow, other: JobRow): number {
  if (one.run_ms !== other.run_ms) return one.run_ms - other.run_ms
  return (one.arrival ?? Number.POSITIVE_INFINITY) - (other.arrival ?? Number.POSITIVE_INFINITY)
}
