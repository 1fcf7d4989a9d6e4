import type {
  Actor,
  AuditEntry,
  AuditFilter,
  DeadLetterFilter,
  DeadLetters,
  LetterAction,
  PayloadEdit,
} from '../../engine/dead-letters.ts'
import { EngineError } from '../../errors.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import {
  type Act,
  type AuditRecord,
  allows,
  auditOf,
  auditOfErase,
  auditOfNote,
  ERASED_TEXT,
  eventOf,
  isLetter,
  toAuditEntry,
  toDeadLetter,
} from '../sql/dead-letters.ts'
import type { SqliteCore, SqliteStore } from './core.ts'
import { fileOf } from './database.ts'
import { forgetPredecessors, IS_AWAITED, reviewSuccessors } from './dependencies.ts'
import { takeKey } from './enqueue.ts'
import { recordEvent } from './history.ts'
import { findRow } from './inspector.ts'
import { isLatest } from './latest-keys.ts'
import { boundsOf, countCauses, DEAD, listDead } from './letter-pages.ts'
import { parse, toView, UNLEASED, VIEW_COLUMNS, type ViewRow } from './rows.ts'
import { forgetTags } from './tags.ts'
import { rewriteFile } from './vacuum.ts'

/** Back to the queue with all its options. Only the record of the failure goes. */
export const REQUEUE_DEAD = `
UPDATE job_queue SET status = 'queued', attempts = 0, scheduled_at = :now, error = NULL, error_record = NULL,
  completed_at = NULL, started_at = NULL, progress = NULL, idempotency_key = :key,
  waiting_for = (SELECT count(*) FROM job_after WHERE job_after.job_id = job_queue.id AND held = 1),
  payload = coalesce(:payload, payload), payload_version = coalesce(:version, payload_version), replays = replays + 1,
  ${UNLEASED}
WHERE id = :id AND ${DEAD}`

/** Retention counts from `completed_at`, so an old letter can be undone for as long as any other. */
export const DISCARD_DEAD = `
UPDATE job_queue SET ended = 'discarded', completed_at = :now, updated_at = :now WHERE id = :id AND ${DEAD}`

/** Restores the time of death. */
export const UNDISCARD = `
UPDATE job_queue SET ended = NULL, completed_at = coalesce(:completedAt, completed_at), updated_at = :now
WHERE id = :id AND status = 'dead_letter' AND ended = 'discarded'`

export const REMOVE_DEAD = `
DELETE FROM job_queue WHERE id = :id AND status = 'dead_letter' AND (ended IS NULL OR ended = 'discarded')`

export const REMOVE_EVENTS = `DELETE FROM job_events WHERE job_id = :id`

/** A finished job that is not a dead letter. A later job that may still run, or be replayed, would need its result. */
export const ERASE_FINISHED = `
DELETE FROM job_queue WHERE id = :id AND NOT ${IS_AWAITED}
  AND (status = 'completed' OR (status = 'dead_letter' AND ended IN ('cancelled', 'superseded')))`

/** What the audit says about a job. The trigger allows nothing else. */
export const ERASE_ENTRIES = `
UPDATE job_audit SET before = '${ERASED_TEXT}', after = CASE WHEN after IS NULL THEN NULL ELSE '${ERASED_TEXT}' END
WHERE job_id = :id AND action <> 'erase' AND before <> '${ERASED_TEXT}'`

export const AUDITED_TYPE = `SELECT type FROM job_audit WHERE job_id = :id ORDER BY seq DESC LIMIT 1`

export const RECORD_ACT = `
INSERT INTO job_audit (at, who, reason, action, job_id, type, subject, before, after)
VALUES (:now, :who, :reason, :action, :jobId, :type, :subject, :before, :after)`

/** The job as it was before it was discarded. */
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
  const act = async (ids: readonly string[], acting: Act, perform: Perform = PERFORM[acting.action]) => {
    const done = await core.write(acting.action, () => ids.map((id) => actOn(core, id, acting, perform)))
    // Jobs that come after the letter may be claimed now.
    if (done.includes(true)) core.changed()
    return done
  }
  return {
    list: (filter) =>
      core.read('dead letters', () => {
        if (!('ids' in filter)) return listLetters(core, filter).map((row) => toDeadLetter(toView(row)))
        const rows = filter.ids.flatMap((id) => findRow(core, id) ?? [])
        return rows.map(toView).filter(isLetter).map(toDeadLetter)
      }),
    causes: (filter) => core.read('dead letters', () => countCauses(core.connection, filter)),
    requeue: (ids, by, edit) =>
      act(ids, { action: 'replay', by, ...(edit && { edit: edit.note }) }, (_, row) => requeue(core, row, edit)),
    discard: (ids, by) => act(ids, { action: 'discard', by }),
    undiscard: (ids, by) => act(ids, { action: 'undo', by }),
    remove: (ids, by, options) => (options?.erase === true ? erase(core, ids, by) : act(ids, { action: 'purge', by })),
    note: (note) => core.write('note', () => audit(core, auditOfNote(note))),
    audit: (filter) => core.read('audit', () => readAudit(core, filter)),
  }
}

export function listLetters(core: SqliteStore, filter: DeadLetterFilter): ViewRow[] {
  return core.connection.prepare(listDead(VIEW_COLUMNS, filter)).all(boundsOf(filter)) as ViewRow[]
}

/** Changes the row of a letter that allows the act. False when something else is in the way. */
type Perform = (core: SqliteStore, row: ViewRow) => boolean

const PERFORM: Readonly<Record<LetterAction, Perform>> = { replay: requeue, discard, undo: undiscard, purge: remove }

/** Inside a write transaction. False when the job is no letter that allows the act. */
function actOn(core: SqliteStore, id: string, act: Act, perform: Perform): boolean {
  const { connection, clock } = core
  const row = findRow(core, id)
  const before = row === undefined ? null : toView(row)
  if (row === undefined || before === null || !allows(act.action, before) || !perform(core, row)) return false
  const nowMs = clock.nowMs()
  reviewSuccessors(connection, id, nowMs)
  const event = eventOf(act)
  if (event !== null) recordEvent(connection, { ...event, id, attempt: row.attempts, worker: null }, nowMs)
  const left = event === null ? undefined : findRow(core, id)
  audit(core, auditOf(act, before, left === undefined ? null : toView(left)))
  return true
}

/** The key returns to its job unless another live job has taken it. A newer version of a latest key stays the last. */
function requeue({ connection, clock }: SqliteStore, row: ViewRow, edit?: PayloadEdit): boolean {
  if (!isLatest(connection, row) || (edit !== undefined && row.payload !== edit.replaces)) return false
  const key = row.idempotency_key ?? row.released_key
  if (key !== null && takeKey(connection, key, row.id) !== null) return false
  const change = { payload: edit?.payload ?? null, version: edit?.payloadVersion ?? null }
  connection.prepare(REQUEUE_DEAD).run({ id: row.id, now: toIso(clock.nowMs()), key, ...change })
  return true
}

function discard({ connection, clock }: SqliteStore, { id }: ViewRow): boolean {
  connection.prepare(DISCARD_DEAD).run({ id, now: toIso(clock.nowMs()) })
  return true
}

function undiscard({ connection, clock }: SqliteStore, { id }: ViewRow): boolean {
  const discarded = connection.prepare(BEFORE_DISCARD).get({ id }) as { before: string } | undefined
  const diedAtMs = parse<Record<string, unknown>>(discarded?.before ?? null, {}).completedAtMs
  const completedAt = typeof diedAtMs === 'number' ? toIso(diedAtMs) : null
  connection.prepare(UNDISCARD).run({ id, completedAt, now: toIso(clock.nowMs()) })
  return true
}

function remove({ connection }: SqliteStore, row: ViewRow): boolean {
  const { id, predecessors } = row
  connection.prepare(REMOVE_DEAD).run({ id })
  connection.prepare(REMOVE_EVENTS).run({ id })
  if (predecessors !== null) forgetPredecessors(connection, id)
  forgetTags(connection, [row])
  return true
}

/** Puts a letter back into the queue, inside a write transaction. False when it is no letter or its key is taken. */
export function requeueLetter(store: SqliteStore, id: string, by: Actor): boolean {
  return actOn(store, id, { action: 'replay', by }, requeue)
}

/** Removes a letter and its history, inside a write transaction. The audit keeps an entry. False when it is no letter. */
export function removeLetter(core: SqliteStore, id: string, by: Actor): boolean {
  return actOn(core, id, { action: 'purge', by }, remove)
}

/** Deleted text stays in the file until it is written anew, so that is part of it. */
async function erase(core: SqliteCore, ids: readonly string[], by: Actor): Promise<readonly boolean[]> {
  const eraseAll = () => ids.map((id, index) => ids.indexOf(id) === index && eraseJob(core, id, by))
  const done = await core.write('erase', eraseAll)
  if (!done.includes(true)) return done
  core.changed()
  if (await rewriteFile(fileOf(core.connection.handle))) return done
  const [first = ''] = ids.filter((_, index) => done[index] === true)
  throw new EngineError(
    'ERR_STORAGE_BUSY',
    `SQLite: the jobs are erased, but another connection was in the way, so their text may still be in the file and its log; end long transactions, then erase job ${first} again, which rewrites the whole file`,
  )
}

/** Inside a write transaction. */
function eraseJob(core: SqliteStore, id: string, by: Actor): boolean {
  const { connection, clock } = core
  const row = findRow(core, id)
  const known = connection.prepare(AUDITED_TYPE).get({ id }) as { type: string } | undefined
  const type = row?.type ?? known?.type
  if (type === undefined || (row !== undefined && !removeFinished(core, row))) return false
  reviewSuccessors(connection, id, clock.nowMs())
  const entries = Number(connection.prepare(ERASE_ENTRIES).run({ id }).changes)
  audit(core, auditOfErase(by, { id, type, job: row === undefined ? null : toView(row), entries }))
  return true
}

function removeFinished(core: SqliteStore, row: ViewRow): boolean {
  if (isLetter(toView(row))) return remove(core, row)
  if (core.connection.prepare(ERASE_FINISHED).run({ id: row.id }).changes === 0) return false
  core.connection.prepare(REMOVE_EVENTS).run({ id: row.id })
  forgetTags(core.connection, [row])
  return true
}

function audit({ connection, clock }: SqliteStore, record: AuditRecord): void {
  connection.prepare(RECORD_ACT).run({ now: toIso(clock.nowMs()), ...record })
}

interface AuditRow extends Omit<AuditRecord, 'jobId'> {
  readonly seq: number
  readonly at: string
  readonly job_id: string
}

function readAudit(core: SqliteStore, filter: AuditFilter): AuditEntry[] {
  const { jobId, who, action, before, limit } = filter
  const rows = core.connection.prepare(listAudit(filter)).all({
    limit,
    ...(jobId !== undefined && { id: jobId }),
    ...(who !== undefined && { who }),
    ...(action !== undefined && { action }),
    ...(before !== undefined && { before }),
  }) as unknown[] as AuditRow[]
  return rows.map((row) => {
    const { before, after } = row
    const views = { before: parse<AuditEntry['before']>(before, {}), after: parse<AuditEntry['after']>(after, null) }
    return toAuditEntry({ ...row, ...views }, fromIso(row.at))
  })
}
