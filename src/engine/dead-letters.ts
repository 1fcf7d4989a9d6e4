/** The part of the port that the dead-letter desk stands on. What may be done, and how often, is the desk's to decide. */
import type { ErrorRecord, JobView } from '../job/job.ts'
import type { JobState } from '../job/states.ts'

/** Who acts, and why. Both are stored with the act. */
export interface Actor {
  readonly who: string
  readonly reason: string
}

export interface DeadLetter {
  readonly job: JobView
  readonly error: ErrorRecord
  /** Why it can never be replayed, such as a record of unknown origin. Absent for a letter that can be. */
  readonly unreplayable?: string
}

export interface DeadLetterFilter {
  readonly type?: string
  /** Died at this time or later. */
  readonly sinceMs?: number
  /** Died before this time. */
  readonly beforeMs?: number
  readonly limit: number
  /** The last letter of the page before. What dies meanwhile is newer, so it is never met on a later page. */
  readonly after?: { readonly completedAtMs: number; readonly id: string }
}

/** Letters of one type with one error, as far as a store tells errors apart. */
export interface LetterCause {
  readonly type: string
  readonly error: Pick<ErrorRecord, 'name' | 'code' | 'message'>
  readonly count: number
  /** When the first of them died. */
  readonly oldestAtMs: number
  readonly newestAtMs: number
  readonly newestId: string
}

/** A page of letters, counted. */
export interface LetterCauses {
  readonly causes: readonly LetterCause[]
  /** The last letter of the page; null at the end. */
  readonly last: DeadLetterFilter['after'] | null
}

/** A payload that takes the place of the stored one, as text that the desk has checked. */
export interface PayloadEdit {
  readonly payload: string
  readonly payloadVersion: number
  /** The stored payload, as a view shows it. A letter that has another one by now is left alone. */
  readonly replaces: string
  /** What the audit keeps of the change: `edit` in the entry's `after`. */
  readonly note: EditNote
}

/** What changed in a payload, without the payload. */
export interface EditNote {
  /** Salted hashes of both payloads. `desk.isPayload` compares a payload with one. */
  readonly before: string
  readonly after: string
  readonly changed: readonly ChangedPart[]
  /** How many more parts changed than `changed` names. */
  readonly unnamed: number
}

/** A part of a payload that changed. Values are given only where the type's schema is known and marks neither as secret. */
export interface ChangedPart {
  /** A JSON pointer, such as `/items/0/price`; empty for the whole payload. */
  readonly path: string
  readonly before?: unknown
  readonly after?: unknown
  /** The sides that are left out because they are long. One that is left out otherwise was absent. */
  readonly long?: readonly ('before' | 'after')[]
}

export const DESK_ACTIONS = ['replay', 'discard', 'undo', 'purge', 'erase'] as const
export type DeskAction = (typeof DESK_ACTIONS)[number]
/** Acts that concern dead letters only. */
export type LetterAction = Exclude<DeskAction, 'erase'>

/** What an entry has for the job before and after, once it was erased. */
export const ERASED: Readonly<Record<string, unknown>> = Object.freeze({ erased: true })

/** Acts of operators outside the desk. The code that carries one out also writes the audit entry. */
export const OPERATOR_ACTIONS = [
  'enqueue',
  'cancel',
  'retry',
  'pause',
  'resume',
  'limits-change',
  'limits-reset',
  'type-drain',
  'type-obliterate',
  'schedule-change',
  'schedule-pause',
  'schedule-resume',
  'schedule-run',
  'schedule-remove',
  'worker-drain',
  'forget',
  'webhook-enable',
  'webhook-disable',
  'webhook-test',
  'webhook-redeliver',
  'row-requeue',
  'row-fail',
  'link',
] as const
export type OperatorAction = (typeof OPERATOR_ACTIONS)[number]

export type AuditAction = DeskAction | OperatorAction
export const AUDIT_ACTIONS: readonly AuditAction[] = [...DESK_ACTIONS, ...OPERATOR_ACTIONS]

/** An act that has been carried out, for the audit. */
export interface AuditNote extends Actor {
  readonly action: OperatorAction
  /** Null for an act that is about no single job. */
  readonly jobId: string | null
  /** Null for an act that is about no single type. */
  readonly type: string | null
  /** What it is about otherwise, such as a schedule's name. */
  readonly subject: string | null
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>> | null
}

/**
 * One act of an operator. Those of the desk are written with the act, in one transaction. No entry is ever removed, also
 * when its job is. An erase replaces what entries say about the job by `ERASED`; nothing else changes one.
 */
export interface AuditEntry {
  /** Grows with every entry. */
  readonly seq: number
  readonly atMs: number
  readonly who: string
  readonly reason: string
  readonly action: AuditAction
  /** Empty for an act that is about no single job. */
  readonly jobId: string
  /** Empty for an act that is about no single type. */
  readonly type: string
  /** What it is about otherwise, such as a schedule's name. */
  readonly subject: string | null
  /**
   * The job as it was, without its payload and result. Entries of earlier versions have the payload where a
   * replay changed it.
   */
  readonly before: Readonly<Record<string, unknown>>
  /** The job as it is since, with an `EditNote` as `edit` if its payload was changed; null when it is gone. */
  readonly after: Readonly<Record<string, unknown>> | null
}

export interface AuditFilter {
  readonly jobId?: string
  readonly who?: string
  readonly action?: AuditAction
  readonly limit: number
  /** Entries with a number below this: the last one of the page before. */
  readonly before?: number
}

export interface RemoveOptions {
  readonly erase?: boolean
}

/**
 * An act on several letters answers for each id, in order, whether it was done. A call is one transaction where the engine
 * has transactions. Each letter changes together with its audit entry; one answered with false has changed nothing and has
 * no entry. An id that is given twice is acted on once.
 */
export interface DeadLetters {
  /**
   * Newest first: by the time of death, then by id. With `ids`: those of them that are dead letters, or were and are
   * discarded, in the order of `ids`.
   */
  list(filter: DeadLetterFilter | { readonly ids: readonly string[] }): Promise<readonly DeadLetter[]>
  /** The letters that `list` would answer with, counted by their errors: for stores that read these faster than whole jobs. */
  causes?(filter: DeadLetterFilter): Promise<LetterCauses>
  /**
   * Back to the queue under its own id, with all its options, its tenant and its key, no attempts used and `replays`
   * one higher. False unless it is a dead letter, so of two callers that replay one letter, one succeeds. `edit` is for a
   * single id.
   */
  requeue(ids: readonly string[], by: Actor, edit?: PayloadEdit): Promise<readonly boolean[]>
  /** A dead letter ends `discarded`: no longer listed or counted, but kept. False unless it is a dead letter. */
  discard(ids: readonly string[], by: Actor): Promise<readonly boolean[]>
  /** The dead letter that it was, with its time of death. False unless it is discarded and still kept. */
  undiscard(ids: readonly string[], by: Actor): Promise<readonly boolean[]>
  /**
   * Deletes a job with its history. False unless it is a dead letter or discarded. With `erase`: any job that is over,
   * unless one that may still run comes after it, and what the audit says about it; also if the job is gone and only the
   * audit knows it. What the store still has of deleted data is overwritten as far as the engine can.
   */
  remove(ids: readonly string[], by: Actor, options?: RemoveOptions): Promise<readonly boolean[]>
  /** Writes an entry for an act that was none of these. */
  note(note: AuditNote): Promise<void>
  /** Newest first. */
  audit(filter: AuditFilter): Promise<readonly AuditEntry[]>
}

/** What an audit entry keeps of a job. Payloads stay out of it, because an entry outlives even a purge. */
export function auditView(view: JobView, edit?: EditNote): Readonly<Record<string, unknown>> {
  const { payload: _, result: __, progress: ___, error, ...facts } = view
  return {
    ...facts,
    error: error === null ? null : { name: error.name, code: error.code, message: error.message },
    ...(edit && { edit }),
  }
}

/** What the entry of an erase says of the job: the state it had, if it was still there, and how many entries lost their facts. */
export function erasedView(state: JobState | null, entries: number): Readonly<Record<string, unknown>> {
  return { state, entries }
}

export function matchesAudit(entry: AuditEntry, filter: AuditFilter): boolean {
  const { jobId, who, action, before } = filter
  return (
    (jobId === undefined || entry.jobId === jobId) &&
    (who === undefined || entry.who === who) &&
    (action === undefined || entry.action === action) &&
    (before === undefined || entry.seq < before)
  )
}
