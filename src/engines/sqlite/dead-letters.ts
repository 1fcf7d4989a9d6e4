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
import type { JobEventName } from '../../job/job.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import type { SqliteCore } from './core.ts'
import { forgetPredecessors, reviewSuccessors } from './dependencies.ts'
import { takeKey } from './enqueue.ts'
import { UNLEASED, VIEW_COLUMNS } from './fragments.ts'
import { recordEvent } from './history.ts'
import { findRow } from './inspector.ts'
import { FIND_LATEST_SEQ } from './latest-keys.ts'
import { parse, toView, type ViewRow } from './rows.ts'

const DEAD = `status = 'dead_letter' AND ended IS NULL`

/** The branch per filter lets each use the index. */
export function listDead(filter: DeadLetterFilter): string {
  const conditions = [
    DEAD,
    filter.type !== undefined && 'type = :type',
    filter.sinceMs !== undefined && 'completed_at >= :since',
    filter.beforeMs !== undefined && 'completed_at < :before',
    filter.after !== undefined && '(completed_at, id) < (:afterAt, :afterId)',
  ]
  return `SELECT ${VIEW_COLUMNS} FROM job_queue INDEXED BY idx_job_queue_dead
WHERE ${conditions.filter(Boolean).join(' AND ')} ORDER BY completed_at DESC, id DESC LIMIT :limit`
}

/** Back to the queue with all its options: only the record of the failure goes (B127). */
export const REQUEUE_DEAD = `
UPDATE job_queue SET status = 'queued', attempts = 0, scheduled_at = :now, error = NULL, error_record = NULL,
  completed_at = NULL, started_at = NULL, progress = NULL, idempotency_key = :key,
  waiting_for = (SELECT count(*) FROM job_after WHERE job_after.job_id = job_queue.id AND held = 1),
  payload = coalesce(:payload, payload), payload_version = coalesce(:version, payload_version), replays = replays + 1,
  ${UNLEASED}
WHERE id = :id AND ${DEAD}`

/** Whoever tidies up goes by the end, so a letter that died long ago can be undone for as long as any other. */
export const DISCARD_DEAD = `
UPDATE job_queue SET ended = 'discarded', completed_at = :now, updated_at = :now WHERE id = :id AND ${DEAD}`

/** With the time of death that it had. */
export const UNDISCARD = `
UPDATE job_queue SET ended = NULL, completed_at = coalesce(:completedAt, completed_at), updated_at = :now
WHERE id = :id AND status = 'dead_letter' AND ended = 'discarded'`

export const REMOVE_DEAD = `
DELETE FROM job_queue WHERE id = :id AND status = 'dead_letter' AND (ended IS NULL OR ended = 'discarded')`

export const REMOVE_EVENTS = `DELETE FROM job_events WHERE job_id = :id`

export const RECORD_ACT = `
INSERT INTO job_audit (at, who, reason, action, job_id, type, subject, before, after)
VALUES (:now, :who, :reason, :action, :id, :type, :subject, :before, :after)`

/** What the job was before it was discarded. */
export const BEFORE_DISCARD = `
SELECT before FROM job_audit WHERE job_id = :id AND action = 'discard' ORDER BY seq DESC LIMIT 1`

export function listAudit(filter: AuditFilter): string {
  const conditions = [
    filter.jobId !== undefined && 'job_id = :id',
    filter.who !== undefined && 'who = :who',
    filter.action !== undefined && 'action = :action',
    filter.before !== undefined && 'seq < :before',
  ].filter(Boolean)
  return `SELECT seq, at, who, reason, action, job_id, type, subject, before, after FROM job_audit
${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} ORDER BY seq DESC LIMIT :limit`
}

export function createDeadLetters(core: SqliteCore): DeadLetters {
  return {
    list: (filter) =>
      core.read('dead letters', () =>
        ('ids' in filter ? namedRows(core, filter.ids) : listRows(core, filter)).map(toDeadLetter),
      ),
    async requeue(ids, by, edit) {
      const requeued = await core.write('requeue', () => ids.map((id) => requeue(core, id, by, edit ?? null)))
      if (requeued.includes(true)) core.changed()
      return requeued
    },
    // Jobs that come after one that is discarded or removed may be claimed now.
    async discard(ids, by) {
      const discarded = await core.write('discard', () => ids.map((id) => discard(core, id, by)))
      if (discarded.includes(true)) core.wakeups.notify()
      return discarded
    },
    undiscard: (ids, by) => core.write('undiscard', () => ids.map((id) => undiscard(core, id, by))),
    async remove(ids, by) {
      const removed = await core.write('purge', () => ids.map((id) => removeLetter(core, id, by)))
      if (removed.includes(true)) core.wakeups.notify()
      return removed
    },
    note: (note) => core.write('note', () => record(core, note)),
    audit: (filter) => core.read('audit', () => readAudit(core, filter)),
  }
}

function isDead(row: ViewRow): boolean {
  return row.status === 'dead_letter' && row.ended === null
}

function isDiscarded(row: ViewRow): boolean {
  return row.status === 'dead_letter' && row.ended === 'discarded'
}

function namedRows(core: SqliteCore, ids: readonly string[]): ViewRow[] {
  const rows = ids.map((id) => findRow(core, id)).filter((row) => row !== undefined)
  return rows.filter((row) => isDead(row) || isDiscarded(row))
}

function listRows(core: SqliteCore, filter: DeadLetterFilter): ViewRow[] {
  const { type, sinceMs, beforeMs, limit, after } = filter
  return core.connection.prepare(listDead(filter)).all({
    // Without an upper bound, as the memory engine takes it: SQLite says -1.
    limit: Number.isFinite(limit) ? limit : -1,
    ...(type !== undefined && { type }),
    ...(sinceMs !== undefined && { since: toIso(sinceMs) }),
    ...(beforeMs !== undefined && { before: toIso(beforeMs) }),
    ...(after !== undefined && { afterAt: toIso(after.completedAtMs), afterId: after.id }),
  }) as ViewRow[]
}

function toDeadLetter(row: ViewRow): DeadLetter {
  const job = toView(row)
  return { job, error: job.error ?? { name: 'Error', code: null, message: 'no error was recorded', stack: null } }
}

/** The key goes back to its job only if no other live job has taken it; a newer version of a latest key stays the last. */
function requeue(core: SqliteCore, id: string, by: By, edit: PayloadEdit | null): boolean {
  const { connection, clock } = core
  const row = findRow(core, id)
  if (row === undefined || !isDead(row)) return false
  if (row.latest_key !== null && !isLatest(core, row)) return false
  const key = row.idempotency_key ?? row.released_key
  if (key !== null && takeKey(connection, key, id) !== null) return false
  const now = toIso(clock.nowMs())
  const change = { payload: edit?.payload ?? null, version: edit?.payloadVersion ?? null }
  connection.prepare(REQUEUE_DEAD).run({ id, now, key, ...change })
  reviewSuccessors(connection, id, clock.nowMs())
  recordAct(core, { row, by, action: 'replay', event: 'replayed', withPayload: edit !== null })
  return true
}

/** Whether no newer version has been seen: an older one must never run after it (I4). */
function isLatest(core: SqliteCore, row: ViewRow): boolean {
  const subject = { type: row.type, latestKey: row.latest_key }
  const highest = core.connection.prepare(FIND_LATEST_SEQ).get(subject) as { seq: number } | undefined
  return highest === undefined || (row.latest_seq ?? 0) >= highest.seq
}

function discard(core: SqliteCore, id: string, by: By): boolean {
  const row = findRow(core, id)
  if (row === undefined || !isDead(row)) return false
  core.connection.prepare(DISCARD_DEAD).run({ id, now: toIso(core.clock.nowMs()) })
  reviewSuccessors(core.connection, id, core.clock.nowMs())
  recordAct(core, { row, by, action: 'discard', event: 'discarded' })
  return true
}

function undiscard(core: SqliteCore, id: string, by: By): boolean {
  const row = findRow(core, id)
  if (row === undefined || !isDiscarded(row)) return false
  const discarded = core.connection.prepare(BEFORE_DISCARD).get({ id }) as { before: string } | undefined
  const diedAtMs = parse<Record<string, unknown>>(discarded?.before ?? null, {}).completedAtMs
  const completedAt = typeof diedAtMs === 'number' ? toIso(diedAtMs) : null
  core.connection.prepare(UNDISCARD).run({ id, completedAt, now: toIso(core.clock.nowMs()) })
  reviewSuccessors(core.connection, id, core.clock.nowMs())
  recordAct(core, { row, by, action: 'undo', event: 'dead' })
  return true
}

/** Deletes a dead letter or a discarded job, inside a write transaction; only the audit remembers it. False unless it is one. */
export function removeLetter(core: SqliteCore, id: string, by: By): boolean {
  const row = findRow(core, id)
  if (row === undefined || !(isDead(row) || isDiscarded(row))) return false
  core.connection.prepare(REMOVE_DEAD).run({ id })
  core.connection.prepare(REMOVE_EVENTS).run({ id })
  reviewSuccessors(core.connection, id, core.clock.nowMs())
  if (row.predecessors !== null) forgetPredecessors(core.connection, id)
  recordAct(core, { row, by, action: 'purge', event: null })
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

function recordAct(core: SqliteCore, { row, by, action, event, withPayload = false }: Act): void {
  const { connection, clock } = core
  const { id, type, attempts } = row
  const nowMs = clock.nowMs()
  if (event !== null) {
    const detail = action === 'undo' ? { ...by, undone: 'discarded' } : { ...by }
    recordEvent(connection, { id, name: event, attempt: attempts, worker: null, detail }, nowMs)
  }
  const after = event === null ? undefined : findRow(core, id)
  connection.prepare(RECORD_ACT).run({
    now: toIso(nowMs),
    who: by.who,
    reason: by.reason,
    action,
    id,
    type,
    subject: null,
    before: JSON.stringify(auditView(toView(row), withPayload)),
    after: after === undefined ? null : JSON.stringify(auditView(toView(after), withPayload)),
  })
}

function record({ connection, clock }: SqliteCore, note: AuditNote): void {
  const { who, reason, action, jobId, type, subject, before, after } = note
  connection.prepare(RECORD_ACT).run({
    now: toIso(clock.nowMs()),
    ...{ who, reason, action, id: jobId ?? '', type: type ?? '', subject },
    before: JSON.stringify(before),
    after: after === null ? null : JSON.stringify(after),
  })
}

interface AuditRow {
  readonly seq: number
  readonly at: string
  readonly who: string
  readonly reason: string
  readonly action: AuditAction
  readonly job_id: string
  readonly type: string
  readonly subject: string | null
  readonly before: string
  readonly after: string | null
}

function readAudit(core: SqliteCore, filter: AuditFilter): AuditEntry[] {
  const { jobId, who, action, before, limit } = filter
  const rows = core.connection.prepare(listAudit(filter)).all({
    limit,
    ...(jobId !== undefined && { id: jobId }),
    ...(who !== undefined && { who }),
    ...(action !== undefined && { action }),
    ...(before !== undefined && { before }),
  }) as AuditRow[]
  return rows.map((row) => ({
    seq: row.seq,
    atMs: fromIso(row.at),
    who: row.who,
    reason: row.reason,
    action: row.action,
    jobId: row.job_id,
    type: row.type,
    subject: row.subject,
    before: parse<Record<string, unknown>>(row.before, {}),
    after: parse<Record<string, unknown> | null>(row.after, null),
  }))
}
