/** What acting on a dead letter means, and what the audit and the history keep of it, for engines that store jobs as rows. */
import {
  type Actor,
  type AuditAction,
  type AuditEntry,
  type AuditNote,
  auditView,
  type DeadLetter,
  type EditNote,
  ERASED,
  erasedView,
  type LetterAction,
  type LetterCause,
  type LetterCauses,
} from '../../engine/dead-letters.ts'
import type { JobEventName, JobView } from '../../job/job.ts'

export interface Act {
  readonly action: LetterAction
  readonly by: Actor
  /** The act changed the payload. */
  readonly edit?: EditNote
}

/** A dead letter, or a discarded one that is still kept. */
export function isLetter({ state }: JobView): boolean {
  return state === 'dead_letter' || state === 'discarded'
}

export function allows(action: LetterAction, job: JobView): boolean {
  if (!isLetter(job)) return false
  switch (action) {
    case 'replay':
    case 'discard':
      return job.state === 'dead_letter'
    case 'undo':
      return job.state === 'discarded'
    case 'purge':
      return true
    default:
      return action satisfies never
  }
}

const NO_ERROR = { name: 'Error', code: null, message: 'no error was recorded', stack: null }

export function toDeadLetter(job: JobView): DeadLetter {
  return { job, error: job.error ?? NO_ERROR }
}

/** Letters of one page with one error. Times of death stand with their letters: `<time>|<id>`. */
export interface CauseRow {
  readonly type: string
  readonly name: string
  readonly code: string | null
  /** Null if no error was recorded. */
  readonly message: string | null
  readonly count: number
  readonly oldest: string
  readonly newest: string
  /** The last of the page; null if another program has written no time of death, which has no place in it. */
  readonly last: string | null
}

/** `rows`: the letters of one page of at most `limit`. */
export function toLetterCauses(
  rows: readonly CauseRow[],
  limit: number,
  timeOf: (text: string) => number,
): LetterCauses {
  const placeOf = (text: string) => {
    const end = text.indexOf('|')
    return { completedAtMs: timeOf(text.slice(0, end)), id: text.slice(end + 1) }
  }
  const causes = rows.map(({ type, name, code, message, count, oldest, newest }): LetterCause => {
    const { completedAtMs: newestAtMs, id: newestId } = placeOf(newest)
    const error = message === null ? NO_ERROR : { name, code, message }
    return { type, error, count, oldestAtMs: placeOf(oldest).completedAtMs, newestAtMs, newestId }
  })
  const seen = rows.reduce((sum, { count }) => sum + count, 0)
  const [last] = rows.flatMap((row) => row.last ?? []).sort()
  return { causes, last: last === undefined || seen < limit ? null : placeOf(last) }
}

interface ActEvent {
  readonly name: JobEventName
  readonly detail: Readonly<Record<string, unknown>>
}

/** The act in the job's history; null for a purge, which removes the history too. */
export function eventOf({ action, by: { who, reason } }: Act): ActEvent | null {
  switch (action) {
    case 'replay':
      return { name: 'replayed', detail: { who, reason } }
    case 'discard':
      return { name: 'discarded', detail: { who, reason } }
    case 'undo':
      return { name: 'dead', detail: { who, reason, undone: 'discarded' } }
    case 'purge':
      return null
    default:
      return action satisfies never
  }
}

/** An audit entry about to be stored. `before` and `after` are JSON. */
export interface AuditRecord extends Actor {
  readonly action: AuditAction
  readonly jobId: string
  readonly type: string
  readonly subject: string | null
  readonly before: string
  readonly after: string | null
}

export function auditOf({ action, by, edit }: Act, before: JobView, after: JobView | null): AuditRecord {
  const { who, reason } = by
  const about = { jobId: before.id, type: before.type, subject: null }
  const left = after === null ? null : JSON.stringify(auditView(after, edit))
  return { who, reason, action, ...about, before: JSON.stringify(auditView(before)), after: left }
}

/** What takes the place of `before` and `after` in the entries of a job that is erased; triggers allow no other change. */
export const ERASED_TEXT = JSON.stringify(ERASED)

/** `job`: as it was, or null if only the audit still knew it. `entries`: how many of them say nothing of it any more. */
export function auditOfErase(
  { who, reason }: Actor,
  {
    id,
    type,
    job,
    entries,
  }: { readonly id: string; readonly type: string; readonly job: JobView | null; readonly entries: number },
): AuditRecord {
  const before = JSON.stringify(erasedView(job?.state ?? null, entries))
  return { who, reason, action: 'erase', jobId: id, type, subject: null, before, after: null }
}

export function auditOfNote({ jobId, type, before, after, ...note }: AuditNote): AuditRecord {
  return {
    ...note,
    jobId: jobId ?? '',
    type: type ?? '',
    before: JSON.stringify(before),
    after: after === null ? null : JSON.stringify(after),
  }
}

interface AuditRow extends Omit<AuditEntry, 'atMs' | 'jobId'> {
  readonly job_id: string
}

/** `job_id` is the one column whose name differs; what else the statement selected is dropped. */
export function toAuditEntry(row: AuditRow, atMs: number): AuditEntry {
  const { seq, who, reason, action, job_id: jobId, type, subject, before, after } = row
  return { seq, atMs, who, reason, action, jobId, type, subject, before, after }
}
