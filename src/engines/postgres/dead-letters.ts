import {
  type AuditAction,
  type AuditEntry,
  type AuditFilter,
  type AuditNote,
  auditView,
  type By,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetters,
  type DeskAction,
  type PayloadEdit,
} from '../../engine/dead-letters.ts'
import { storable } from '../../job/error-record.ts'
import type { JobEventName } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import {
  DISCARD_DEAD,
  FIND_LATEST_SEQ,
  FIND_LIVE_KEY,
  LIST_AUDIT,
  LIST_DEAD,
  RECORD_ACT,
  RECORD_LINE,
  REMOVE_JOB,
  REQUEUE_DEAD,
  UNDISCARD,
} from './desk-statements.ts'
import { releaseKeys } from './enqueue.ts'
import { FIND_JOBS, LOCK_JOBS } from './inspect-statements.ts'
import { findRow } from './inspector.ts'
import { keyOf, toView, type ViewRow } from './rows.ts'

export function createDeadLetters(core: PostgresCore): DeadLetters {
  /** Jobs that come after a letter may go on after any of these acts. */
  const act = async (name: string, ids: readonly string[], perform: Perform): Promise<readonly boolean[]> => {
    const done = await core.call(name, (database) => database.transaction((queries) => actOn(queries, ids, perform)))
    if (done.size > 0) core.changed()
    // An id that is given twice was acted on once.
    return ids.map((id) => done.delete(id))
  }
  return {
    list: (filter) =>
      core.call('dead letters', async (database) => {
        const rows = 'ids' in filter ? await namedRows(database, filter.ids) : await listRows(database, filter)
        return rows.map(toDeadLetter)
      }),
    requeue: (ids, by, edit) => act('requeue', ids, (queries, row) => requeue(queries, row, by, edit ?? null)),
    discard: (ids, by) => act('discard', ids, (queries, row) => discard(queries, row, by)),
    undiscard: (ids, by) => act('undiscard', ids, (queries, row) => undiscard(queries, row, by)),
    remove: (ids, by) => act('purge', ids, (queries, row) => removeRow(queries, row, by)),
    note: (note) => core.call('note', (database) => record(database, note)),
    audit: (filter) => core.call('audit', (database) => readAudit(database, filter)),
  }
}

function isDead(row: ViewRow): boolean {
  return row.status === 'failed' && row.ended === null
}

function isDiscarded(row: ViewRow): boolean {
  return row.status === 'failed' && row.ended === 'discarded'
}

/** Acts on a locked row. False when it is not in the state for it. */
type Perform = (queries: Queries, row: ViewRow) => Promise<boolean>

/** In a transaction; the ids of those that it was done to. */
async function actOn(queries: Queries, ids: readonly string[], perform: Perform): Promise<Set<string>> {
  const done = new Set<string>()
  for (const row of await queries.rows<ViewRow>(LOCK_JOBS, [...new Set(ids)])) {
    if (await perform(queries, row)) done.add(row.id)
  }
  return done
}

async function namedRows(queries: Queries, ids: readonly string[]): Promise<readonly ViewRow[]> {
  const rows = new Map((await queries.rows<ViewRow>(FIND_JOBS, ids)).map((row) => [row.id, row]))
  const named = ids.map((id) => rows.get(id)).filter((row) => row !== undefined)
  return named.filter((row) => isDead(row) || isDiscarded(row))
}

function listRows(queries: Queries, filter: DeadLetterFilter): Promise<readonly ViewRow[]> {
  const time = (ms: number | undefined): string | null => (ms === undefined ? null : toIso(ms))
  return queries.rows<ViewRow>(
    LIST_DEAD,
    filter.type ?? null,
    time(filter.sinceMs),
    time(filter.beforeMs),
    time(filter.after?.completedAtMs),
    filter.after?.id ?? null,
    // Without an upper bound, as the memory engine takes it: Postgres says null.
    Number.isFinite(filter.limit) ? filter.limit : null,
  )
}

function toDeadLetter(row: ViewRow): DeadLetter {
  const job = toView(row)
  return { job, error: job.error ?? { name: 'Error', code: null, message: 'no error was recorded', stack: null } }
}

/** The key goes back to its job only if no other live job has taken it; a newer version of a latest key stays the last. */
async function requeue(queries: Queries, row: ViewRow, by: By, edit: PayloadEdit | null): Promise<boolean> {
  if (!isDead(row)) return false
  if (row.latest_key !== null && !(await isLatest(queries, row))) return false
  const key = keyOf(row)
  if (key !== null && (await queries.rows(FIND_LIVE_KEY, key)).length > 0) return false
  if (key !== row.idempotency_key) await releaseKeys(queries, [{ key }])
  await queries.rows(REQUEUE_DEAD, row.id, edit?.payload ?? null, edit?.payloadVersion ?? null, key)
  await recordAct(queries, { row, by, action: 'replay', event: 'replayed', withPayload: edit !== null })
  return true
}

/** Whether no newer version has been seen: an older one must never run after it (I4). */
async function isLatest(queries: Queries, row: ViewRow): Promise<boolean> {
  const [highest] = await queries.rows<{ seq: number }>(FIND_LATEST_SEQ, row.type, row.latest_key)
  return highest === undefined || (row.latest_seq ?? 0) >= highest.seq
}

async function discard(queries: Queries, row: ViewRow, by: By): Promise<boolean> {
  if (!isDead(row)) return false
  await queries.rows(DISCARD_DEAD, row.id)
  await recordAct(queries, { row, by, action: 'discard', event: 'discarded' })
  return true
}

async function undiscard(queries: Queries, row: ViewRow, by: By): Promise<boolean> {
  if (!isDiscarded(row)) return false
  await queries.rows(UNDISCARD, row.id)
  await recordAct(queries, { row, by, action: 'undo', event: 'dead' })
  return true
}

/** In a transaction. False unless it is a dead letter or was one and is discarded. */
export async function removeLetter(queries: Queries, id: string, by: By): Promise<boolean> {
  return (await actOn(queries, [id], (_, row) => removeRow(queries, row, by))).size > 0
}

async function removeRow(queries: Queries, row: ViewRow, by: By): Promise<boolean> {
  if (!(isDead(row) || isDiscarded(row))) return false
  await queries.rows(REMOVE_JOB, row.id)
  await recordAct(queries, { row, by, action: 'purge', event: null })
  return true
}

interface Act {
  /** As it was before. */
  readonly row: ViewRow
  readonly by: By
  readonly action: DeskAction
  /** How the job's history tells it; null when the job is gone with its history. */
  readonly event: JobEventName | null
  readonly withPayload?: boolean
}

async function recordAct(queries: Queries, { row, by, action, event, withPayload = false }: Act): Promise<void> {
  const [who, reason] = [storable(by.who), storable(by.reason)]
  if (event !== null) {
    const detail = action === 'undo' ? { who, reason, undone: 'discarded' } : { who, reason }
    await queries.rows(RECORD_LINE, row.id, event, row.attempt_count, JSON.stringify(detail))
  }
  const after = event === null ? null : await findRow(queries, row.id)
  const text = (view: ViewRow): string => JSON.stringify(auditView(toView(view), withPayload))
  const [before, since] = [text(row), after === null ? null : text(after)]
  await queries.rows(RECORD_ACT, who, reason, action, row.id, row.type ?? '', before, since, null)
}

async function record(queries: Queries, { jobId, type, subject, before, after, ...act }: AuditNote): Promise<void> {
  const [who, reason, id, of] = [act.who, act.reason, jobId ?? '', type ?? ''].map(storable)
  const [was, is] = [JSON.stringify(before), after === null ? null : JSON.stringify(after)]
  await queries.rows(RECORD_ACT, who, reason, act.action, id, of, was, is, subject === null ? null : storable(subject))
}

interface AuditRow {
  readonly seq: number
  readonly at_ms: number
  readonly who: string
  readonly reason: string
  readonly action: AuditAction
  readonly job_id: string
  readonly type: string
  readonly subject: string | null
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>> | null
}

async function readAudit(queries: Queries, filter: AuditFilter): Promise<AuditEntry[]> {
  const { jobId, who, action, before, limit } = filter
  const rows = await queries.rows<AuditRow>(
    LIST_AUDIT,
    jobId ?? null,
    who ?? null,
    action ?? null,
    before ?? null,
    Number.isFinite(limit) ? limit : null,
  )
  return rows.map((row) => ({
    seq: row.seq,
    atMs: row.at_ms,
    who: row.who,
    reason: row.reason,
    action: row.action,
    jobId: row.job_id,
    type: row.type,
    subject: row.subject,
    before: row.before,
    after: row.after,
  }))
}
