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
import { releaseKeys } from './enqueue.ts'
import { event, LIVE, ms, NOW, UNLEASED, viewColumns } from './fragments.ts'
import { FIND_JOBS, findRow, LOCK_JOBS } from './inspector.ts'
import { FIND_LATEST_SEQ } from './latest-keys.ts'
import type { Names } from './names.ts'
import { keyOf, toView, type ViewRow } from './rows.ts'

const DEAD = `status = 'failed' AND ended IS NULL`

/** Newest first. What is not asked for is null. */
export const LIST_DEAD = ({ jobs }: Names): string => `
SELECT ${viewColumns('job')}, ${NOW} AS now FROM ${jobs} AS job
WHERE ${DEAD} AND type IS NOT NULL AND ($2::text IS NULL OR type = $2)
  AND ($3::timestamptz IS NULL OR completed_at >= $3) AND ($4::timestamptz IS NULL OR completed_at < $4)
  AND ($5::timestamptz IS NULL OR (completed_at, id::text) < ($5, $6::text))
ORDER BY completed_at DESC, job.id::text DESC LIMIT $7`

/** Back to the queue with all its options: only the record of the failure goes (B127). */
export const REQUEUE_DEAD = ({ jobs, payloadType }: Names): string => `
UPDATE ${jobs} SET status = 'queued', attempt_count = 0, run_at = ${NOW}, next_earliest_run_at = NULL, fail_code = NULL,
  fail_reason = NULL, error_record = NULL, completed_at = NULL, started_at = NULL, progress = NULL, blocked = false,
  payload = coalesce($3::text::${payloadType}, payload), payload_version = coalesce($4::int, payload_version),
  replays = replays + 1, idempotency_key = $5, ${UNLEASED}
WHERE id::text = $2 AND ${DEAD}`

/** Whether a live job has the key. */
export const FIND_LIVE_KEY = ({ jobs }: Names): string =>
  `SELECT id::text AS id, ${NOW} AS now FROM ${jobs} WHERE idempotency_key = $2 AND ${LIVE}`

/** Whoever tidies up goes by the end, so a letter that died long ago can be undone for as long as any other. */
export const DISCARD_DEAD = ({ jobs }: Names): string =>
  `UPDATE ${jobs} SET ended = 'discarded', completed_at = ${NOW}, updated_at = ${NOW} WHERE id::text = $2 AND ${DEAD}`

/** With the time of death that it had. */
export const UNDISCARD = ({ jobs, audit }: Names): string => `
UPDATE ${jobs} SET ended = NULL, updated_at = ${NOW}, completed_at = coalesce(
  (SELECT to_timestamp((before ->> 'completedAtMs')::float8 / 1000) FROM ${audit}
    WHERE job_id = $2 AND action = 'discard' ORDER BY seq DESC LIMIT 1), completed_at)
WHERE id::text = $2 AND status = 'failed' AND ended = 'discarded'`

export const REMOVE_JOB = ({ jobs, events }: Names): string => `
WITH forgotten AS (DELETE FROM ${events} WHERE job_id::text = $2 AND coalesce(data ->> 'table', 'jobs') = 'jobs')
DELETE FROM ${jobs} WHERE id::text = $2 AND ${NOW} IS NOT NULL`

export const RECORD_LINE = ({ events, eventIdType }: Names): string => `
INSERT INTO ${events} (job_id, data)
VALUES ($2::text::${eventIdType}, ${event({ type: '$3::text', attempt: '$4::int', worker: 'NULL' }, '$5::jsonb')})`

export const RECORD_ACT = ({ audit }: Names): string => `
INSERT INTO ${audit} (at, who, reason, action, job_id, type, before, after, subject)
VALUES (${NOW}, $2, $3, $4, $5, $6, $7::json, $8::json, $9)`

export const LIST_AUDIT = ({ audit }: Names): string => `
SELECT seq::float8 AS seq, ${ms('at')} AS at_ms, who, reason, action, job_id, type, subject, before, after,
  ${NOW} AS now
FROM ${audit}
WHERE ($2::text IS NULL OR job_id = $2) AND ($3::text IS NULL OR who = $3) AND ($4::text IS NULL OR action = $4)
  AND ($5::bigint IS NULL OR seq < $5)
ORDER BY seq DESC LIMIT $6`

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
