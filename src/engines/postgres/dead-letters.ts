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
import { LOCK_JOB } from './inspect-statements.ts'
import { findRow } from './inspector.ts'
import { keyOf, toView, type ViewRow } from './rows.ts'

export function createDeadLetters(core: PostgresCore): DeadLetters {
  /** Whatever is done here may let others go on that came after the letter. */
  const act = async <Value>(name: string, run: (queries: Queries) => Promise<Value>): Promise<Value> => {
    const done = await core.call(name, (database) => database.transaction(run))
    if (done !== false && done !== 0) core.changed()
    return done
  }
  return {
    list: (filter) =>
      core.call('dead letters', async (database) => (await listRows(database, filter)).map(toDeadLetter)),
    find: (id) =>
      core.call('dead letter', async (database) => {
        const row = await findRow(database, id)
        return row !== null && (isDead(row) || isDiscarded(row)) ? toDeadLetter(row) : null
      }),
    requeue: (id, by, edit) => act('requeue', (queries) => requeue(queries, id, by, edit ?? null)),
    discard: (id, by) => act('discard', (queries) => discard(queries, id, by)),
    undiscard: (id, by) => act('undiscard', (queries) => undiscard(queries, id, by)),
    remove: (ids, by) =>
      act('purge', async (queries) => {
        let removed = 0
        // In one order, so that two who purge the same letters do not lock each other out.
        for (const id of [...new Set(ids)].sort()) if (await removeLetter(queries, id, by)) removed += 1
        return removed
      }),
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

async function lockRow(queries: Queries, id: string): Promise<ViewRow | null> {
  return (await queries.rows<ViewRow>(LOCK_JOB, id))[0] ?? null
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
async function requeue(queries: Queries, id: string, by: By, edit: PayloadEdit | null): Promise<boolean> {
  const row = await lockRow(queries, id)
  if (row === null || !isDead(row)) return false
  if (row.latest_key !== null && !(await isLatest(queries, row))) return false
  const key = keyOf(row)
  if (key !== null && (await queries.rows(FIND_LIVE_KEY, key)).length > 0) return false
  if (key !== row.idempotency_key) await releaseKeys(queries, [{ key }])
  await queries.rows(REQUEUE_DEAD, id, edit?.payload ?? null, edit?.payloadVersion ?? null, key)
  await recordAct(queries, { row, by, action: 'replay', event: 'replayed', withPayload: edit !== null })
  return true
}

/** Whether no newer version has been seen: an older one must never run after it (I4). */
async function isLatest(queries: Queries, row: ViewRow): Promise<boolean> {
  const [highest] = await queries.rows<{ seq: number }>(FIND_LATEST_SEQ, row.type, row.latest_key)
  return highest === undefined || (row.latest_seq ?? 0) >= highest.seq
}

async function discard(queries: Queries, id: string, by: By): Promise<boolean> {
  const row = await lockRow(queries, id)
  if (row === null || !isDead(row)) return false
  await queries.rows(DISCARD_DEAD, id)
  await recordAct(queries, { row, by, action: 'discard', event: 'discarded' })
  return true
}

async function undiscard(queries: Queries, id: string, by: By): Promise<boolean> {
  const row = await lockRow(queries, id)
  if (row === null || !isDiscarded(row)) return false
  await queries.rows(UNDISCARD, id)
  await recordAct(queries, { row, by, action: 'undo', event: 'dead' })
  return true
}

/** In a transaction. False unless it is a dead letter or was one and is discarded. */
export async function removeLetter(queries: Queries, id: string, by: By): Promise<boolean> {
  const row = await lockRow(queries, id)
  if (row === null || !(isDead(row) || isDiscarded(row))) return false
  await queries.rows(REMOVE_JOB, id)
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
