import type { PayloadEdit } from '../../engine/dead-letters.ts'
import type { KeptLine } from '../../engine/job-logs.ts'
import type { Lease, Lost } from '../../engine/outcome.ts'
import { effectiveRank } from '../../job/ageing.ts'
import type { ErrorRecord, JobEvent, JobEventName, JobView, NewJob, StoredJob } from '../../job/job.ts'
import { HISTORY_MAX } from '../../job/job.ts'
import { type Ended, type StoredState, shownState } from '../../job/states.ts'
import { tagsOf } from '../../job/tags.ts'
import type { Heaped } from './heap.ts'

export type LossListener = (lost: Lost) => void

/** Who claims, and how to report a lost lease. */
export interface Claimant {
  readonly worker: string
  readonly onLost: LossListener
}

/** A lease as the store keeps it; the fence compares its token. */
export interface HeldLease extends Claimant {
  readonly lease: Lease
  expiresAtMs: number
}

/** One job and everything that happened to it. Only the store writes it. */
export interface JobRow extends Heaped {
  /** Changed only by a replay with an edited payload. */
  job: NewJob
  readonly createdAtMs: number
  /** Grows with every job stored, and never changes. */
  readonly serial: number
  readonly history: JobEvent[]
  /** What its handler said. */
  said: readonly KeptLine[]
  /** The order of the latest key's versions; null without one. */
  readonly seq: number | null
  /** Its place in the queue is (priority, dueMs, arrival); a newer version of a latest key takes over an older one's. */
  dueMs: number
  arrival: number
  /** How many predecessors hold it back. */
  waitingFor: number
  /** How many successors may still run; their handlers will read its result. */
  neededBy: number
  state: StoredState
  ended: Ended | null
  attempt: number
  replays: number
  held: HeldLease | null
  progress: string | null
  result: string | null
  error: ErrorRecord | null
  updatedAtMs: number
  startedAtMs: number | null
  completedAtMs: number | null
  durationMs: number | null
}

const NOTHING_SAID: readonly KeptLine[] = Object.freeze([])

export function newRow(
  job: NewJob,
  place: { dueMs: number; arrival: number; seq: number | null },
  nowMs: number,
): JobRow {
  return {
    job,
    createdAtMs: nowMs,
    serial: place.arrival,
    history: [],
    said: NOTHING_SAID,
    ...place,
    heapIndex: -1,
    waitingFor: 0,
    neededBy: 0,
    state: 'queued',
    ended: null,
    attempt: 0,
    replays: 0,
    held: null,
    progress: null,
    result: null,
    error: null,
    updatedAtMs: nowMs,
    startedAtMs: null,
    completedAtMs: null,
    durationMs: null,
  }
}

/** Due time, then arrival: what a row keeps when priorities are equal, and what a newer version inherits. */
export function isDueBefore(a: Pick<JobRow, 'dueMs' | 'arrival'>, b: Pick<JobRow, 'dueMs' | 'arrival'>): boolean {
  return a.dueMs === b.dueMs ? a.arrival < b.arrival : a.dueMs < b.dueMs
}

/** When a claim looks, and how fast jobs age for it. */
export interface Age {
  readonly nowMs: number
  /** Null: not at all. */
  readonly ageingMs: number | null
}

export function isMoreUrgent(a: JobRow, b: JobRow, age: Age): boolean {
  const [ofA, ofB] = [rankOf(a, age), rankOf(b, age)]
  return ofA === ofB ? isDueBefore(a, b) : ofA < ofB
}

function rankOf({ job, dueMs }: JobRow, { nowMs, ageingMs }: Age): number {
  return effectiveRank(job.priority, nowMs - dueMs, ageingMs)
}

/** Only an operator's replay can move it. */
export function isFinished(row: JobRow): boolean {
  return row.state === 'completed' || row.state === 'dead_letter'
}

/** A dead letter: what an operator may replay or discard. */
export function isDead(row: JobRow): boolean {
  return row.state === 'dead_letter' && row.ended === null
}

/** As it was when it was enqueued, with all its options; the failure is cleared. */
export function resetForReplay(row: JobRow, edit: PayloadEdit | null, nowMs: number): void {
  if (edit !== null) row.job = { ...row.job, payload: edit.payload, payloadVersion: edit.payloadVersion }
  Object.assign(row, {
    attempt: 0,
    replays: row.replays + 1,
    error: null,
    completedAtMs: null,
    startedAtMs: null,
    progress: null,
    dueMs: nowMs,
  })
}

/** Adds a line to the job's history. */
export function record(
  row: JobRow,
  name: JobEventName,
  nowMs: number,
  more: { readonly worker?: string | null; readonly detail?: Readonly<Record<string, unknown>> | null } = {},
): void {
  const { worker = null, detail = null } = more
  row.updatedAtMs = nowMs
  row.history.push({ jobId: row.job.id, atMs: nowMs, name, attempt: row.attempt, worker, detail })
  // The first event, `enqueued`, stays.
  if (row.history.length > HISTORY_MAX) row.history.splice(1, 1)
}

export function toStoredJob(row: JobRow): StoredJob {
  const { job } = row
  return {
    id: job.id,
    type: job.type,
    payload: job.payload,
    payloadVersion: job.payloadVersion,
    priority: job.priority,
    attempts: job.attempts,
    createdAtMs: row.createdAtMs,
    runAtMs: row.dueMs,
    key: job.key,
    latestKey: job.latest?.key ?? null,
    tenant: job.tenant,
    options: job.options,
    after: job.after,
  }
}

export function toView(row: JobRow): JobView {
  return {
    ...toStoredJob(row),
    state: shownState(row.state, row.ended),
    attempt: row.attempt,
    tags: tagsOf(row.job.options),
    replays: row.replays,
    progress: row.progress === null ? null : JSON.parse(row.progress),
    result: row.result === null ? null : JSON.parse(row.result),
    error: row.error,
    leaseOwner: row.held?.worker ?? null,
    leaseUntilMs: row.held?.expiresAtMs ?? null,
    updatedAtMs: row.updatedAtMs,
    startedAtMs: row.startedAtMs,
    completedAtMs: row.completedAtMs,
    durationMs: row.durationMs,
  }
}
