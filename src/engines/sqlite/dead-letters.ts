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
import {
  BEFORE_DISCARD,
  DISCARD_DEAD,
  FIND_LATEST_SEQ,
  listAudit,
  listDead,
  RECORD_ACT,
  REMOVE_DEAD,
  REMOVE_EVENTS,
  REQUEUE_DEAD,
  UNDISCARD,
} from './desk-statements.ts'
import { takeKey } from './enqueue.ts'
import { recordEvent } from './history.ts'
import { findRow } from './inspector.ts'
import { parse, toView, type ViewRow } from './rows.ts'

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
