import type {
  Actor,
  AuditEntry,
  AuditFilter,
  DeadLetters,
  LetterAction,
  PayloadEdit,
} from '../../engine/dead-letters.ts'
import { EngineError } from '../../errors.ts'
import { storable } from '../../job/error-record.ts'
import type { JobView } from '../../job/job.ts'
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
import type { PostgresCore } from './core.ts'
import type { Database, Queries, Statement } from './database.ts'
import { isAwaited } from './dependencies.ts'
import { releaseKeys } from './enqueue.ts'
import { isForbidden, isKeyTaken } from './faults.ts'
import { event, LIVE, ms, NOW, UNLEASED, viewColumns } from './fragments.ts'
import { FIND_JOBS, findRow, LOCK_JOBS } from './inspector.ts'
import { isLatest } from './latest-keys.ts'
import { boundsOf, countCauses, DEAD, listDead } from './letter-pages.ts'
import type { Names } from './names.ts'
import { keyOf, toView, type ViewRow } from './rows.ts'

export const LIST_DEAD = (names: Names): string => listDead(`${viewColumns('job')}, ${NOW} AS now`, names)

/** Back to the queue with all its options. Only the record of the failure goes. */
export const REQUEUE_DEAD = ({ jobs, payloadType }: Names): string => `
UPDATE ${jobs} SET status = 'queued', attempt_count = 0, run_at = ${NOW}, next_earliest_run_at = NULL, fail_code = NULL,
  fail_reason = NULL, error_record = NULL, completed_at = NULL, started_at = NULL, progress = NULL, blocked = false,
  payload = coalesce($3::text::${payloadType}, payload), payload_version = coalesce($4::int, payload_version),
  replays = replays + 1, idempotency_key = $5, ${UNLEASED}
WHERE id::text = $2 AND ${DEAD}`

/** Whether a live job has the key. */
export const FIND_LIVE_KEY = ({ jobs }: Names): string =>
  `SELECT id::text AS id, ${NOW} AS now FROM ${jobs} WHERE idempotency_key = $2 AND ${LIVE}`

/** Retention counts from `completed_at`, so an old letter can be undone for as long as any other. */
export const DISCARD_DEAD = ({ jobs }: Names): string =>
  `UPDATE ${jobs} SET ended = 'discarded', completed_at = ${NOW}, updated_at = ${NOW} WHERE id::text = $2 AND ${DEAD}`

/** Restores the time of death. */
export const UNDISCARD = ({ jobs, audit }: Names): string => `
UPDATE ${jobs} SET ended = NULL, updated_at = ${NOW}, completed_at = coalesce(
  (SELECT to_timestamp((before ->> 'completedAtMs')::float8 / 1000) FROM ${audit}
    WHERE job_id = $2 AND action = 'discard' ORDER BY seq DESC LIMIT 1), completed_at)
WHERE id::text = $2 AND status = 'failed' AND ended = 'discarded'`

export const REMOVE_JOB = ({ jobs, events }: Names): string => `
WITH forgotten AS (DELETE FROM ${events} WHERE job_id::text = $2 AND coalesce(data ->> 'table', 'jobs') = 'jobs')
DELETE FROM ${jobs} WHERE id::text = $2 AND ${NOW} IS NOT NULL`

/** A finished job that is not a dead letter. A later job that may still run, or be replayed, would need its result. */
export const ERASE_FINISHED = (names: Names): string => `
DELETE FROM ${names.jobs} AS job WHERE job.id::text = $2 AND NOT ${isAwaited(names)} AND ${NOW} IS NOT NULL
  AND (job.status = 'completed' OR job.status = 'failed' AND job.ended IN ('cancelled', 'superseded'))
RETURNING job.id`

export const ERASE_EVENTS = ({ events }: Names): string =>
  `DELETE FROM ${events} WHERE job_id::text = $2 AND coalesce(data ->> 'table', 'jobs') = 'jobs' AND ${NOW} IS NOT NULL`

/** What the audit says about a job. The trigger allows nothing else. */
export const ERASE_ENTRIES = ({ audit }: Names): string => `
UPDATE ${audit} SET before = '${ERASED_TEXT}', after = CASE WHEN after IS NULL THEN NULL ELSE '${ERASED_TEXT}'::json END
WHERE job_id = $2 AND action <> 'erase' AND before::text <> '${ERASED_TEXT}' AND ${NOW} IS NOT NULL RETURNING seq`

export const AUDITED_TYPE = ({ audit }: Names): string =>
  `SELECT type, ${NOW} AS now FROM ${audit} WHERE job_id = $2 ORDER BY seq DESC LIMIT 1`

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
  const act = async (ids: readonly string[], { by, ...acting }: Act, perform: Perform = PERFORM[acting.action]) => {
    const stored = { ...acting, by: { who: storable(by.who), reason: storable(by.reason) } }
    const done = await core.call(acting.action, (database) => actOnPage(database, ids, stored, perform))
    // Jobs that come after the letter may be claimed now.
    if (done.size > 0) core.changed()
    // An id that is given twice was acted on once.
    return ids.map((id) => done.delete(id))
  }
  return {
    list: (filter) =>
      core.call('dead letters', async (database) => {
        if (!('ids' in filter)) {
          const rows = await database.rows<ViewRow>(LIST_DEAD, ...boundsOf(filter))
          return rows.map((row) => toDeadLetter(toView(row)))
        }
        const rows = await database.rows<ViewRow>(FIND_JOBS, filter.ids)
        const views = new Map(rows.map((row) => [row.id, toView(row)]))
        return filter.ids
          .flatMap((id) => views.get(id) ?? [])
          .filter(isLetter)
          .map(toDeadLetter)
      }),
    causes: (filter) => core.call('dead letters', (database) => countCauses(database, filter)),
    requeue: (ids, by, edit) =>
      act(ids, { action: 'replay', by, ...(edit && { edit: edit.note }) }, (queries, row) =>
        requeue(queries, row, edit),
      ),
    discard: (ids, by) => act(ids, { action: 'discard', by }),
    undiscard: (ids, by) => act(ids, { action: 'undo', by }),
    remove: (ids, by, options) => (options?.erase === true ? erase(core, ids, by) : act(ids, { action: 'purge', by })),
    note: (note) => core.call('note', (database) => audit(database, auditOfNote(note))),
    audit: (filter) => core.call('audit', (database) => readAudit(database, filter)),
  }
}

/** Changes the row of a letter that allows the act. False when something else is in the way. */
type Perform = (queries: Queries, row: ViewRow) => Promise<boolean>

const PERFORM: Readonly<Record<LetterAction, Perform>> = {
  replay: requeue,
  discard: changing(DISCARD_DEAD),
  undo: changing(UNDISCARD),
  purge: changing(REMOVE_JOB),
}

function changing(statement: Statement): Perform {
  return async (queries, { id }) => {
    await queries.rows(statement, id)
    return true
  }
}

/**
 * One transaction for all. Returns the ids of the letters that were acted on. A job that is stored meanwhile can take the
 * key of one letter, which fails the transaction: each letter then gets its own, so that only this one is refused.
 */
async function actOnPage(database: Database, ids: readonly string[], act: Act, perform: Perform): Promise<Set<string>> {
  const actTogether = (page: readonly string[]): Promise<Set<string>> =>
    database.transaction((queries) => actOn(queries, page, act, perform))
  try {
    return await actTogether(ids)
  } catch (error) {
    if (!isKeyTaken(error)) throw error
  }
  const done = new Set<string>()
  for (const id of new Set(ids)) {
    try {
      for (const acted of await actTogether([id])) done.add(acted)
    } catch (error) {
      if (!isKeyTaken(error)) throw error
    }
  }
  return done
}

/** In a transaction. Returns the ids of the letters that were acted on. */
async function actOn(queries: Queries, ids: readonly string[], act: Act, perform: Perform): Promise<Set<string>> {
  const done = new Set<string>()
  for (const row of await queries.rows<ViewRow>(LOCK_JOBS, [...new Set(ids)])) {
    const before = toView(row)
    if (!allows(act.action, before) || !(await perform(queries, row))) continue
    const event = eventOf(act)
    if (event !== null)
      await queries.rows(RECORD_LINE, row.id, event.name, row.attempt_count, JSON.stringify(event.detail))
    const left = event === null ? null : await findRow(queries, row.id)
    await audit(queries, auditOf(act, before, left === null ? null : toView(left)))
    done.add(row.id)
  }
  return done
}

/** The key returns to its job unless another live job has taken it. A newer version of a latest key stays the last. */
async function requeue(queries: Queries, row: ViewRow, edit?: PayloadEdit): Promise<boolean> {
  if (!(await isLatest(queries, row)) || (edit !== undefined && toView(row).payload !== edit.replaces)) return false
  const key = keyOf(row)
  if (key !== null && (await queries.rows(FIND_LIVE_KEY, key)).length > 0) return false
  if (key !== row.idempotency_key) await releaseKeys(queries, [{ key }])
  await queries.rows(REQUEUE_DEAD, row.id, edit?.payload ?? null, edit?.payloadVersion ?? null, key)
  return true
}

/** Removes a letter and its history, in a transaction. The audit keeps an entry. False when it is no letter. */
export async function removeLetter(queries: Queries, id: string, by: Actor): Promise<boolean> {
  return (await actOn(queries, [id], { action: 'purge', by }, PERFORM.purge)).size > 0
}

/** One transaction for each: it locks the job and rewrites its entries. Bytes of deleted rows stay in the files until `VACUUM FULL`. */
async function erase(core: PostgresCore, ids: readonly string[], by: Actor): Promise<readonly boolean[]> {
  const done = await core.call('erase', async (database) => {
    const erased = new Set<string>()
    for (const id of new Set(ids)) {
      if (await database.transaction((queries) => eraseJob(queries, id, by)).catch(asOwner)) erased.add(id)
    }
    return ids.map((id) => erased.delete(id))
  })
  if (done.includes(true)) core.changed()
  return done
}

/** `?grant=` gives workers no right to rewrite the audit, so the usual advice would not help. */
function asOwner(error: unknown): never {
  if (!isForbidden(error)) throw error
  throw new EngineError(
    'ERR_STORAGE_READONLY',
    'Postgres: erasing rewrites the audit, which this role may not; do it as the owner of the tables, nothing was erased',
    { cause: error },
  )
}

async function eraseJob(queries: Queries, id: string, by: Actor): Promise<boolean> {
  const [row] = await queries.rows<ViewRow>(LOCK_JOBS, [id])
  const [known] = await queries.rows<{ type: string }>(AUDITED_TYPE, id)
  const job = row === undefined ? null : toView(row)
  const type = job?.type ?? known?.type
  if (type === undefined || (job !== null && !(await removeFinished(queries, job)))) return false
  const entries = (await queries.rows(ERASE_ENTRIES, id)).length
  await audit(queries, auditOfErase(by, { id, type, job, entries }))
  return true
}

async function removeFinished(queries: Queries, job: JobView): Promise<boolean> {
  if (isLetter(job)) {
    await queries.rows(REMOVE_JOB, job.id)
    return true
  }
  if ((await queries.rows(ERASE_FINISHED, job.id)).length === 0) return false
  await queries.rows(ERASE_EVENTS, job.id)
  return true
}

async function audit(queries: Queries, record: AuditRecord): Promise<void> {
  const { action, before, after, subject } = record
  const [who, reason, jobId, type] = [record.who, record.reason, record.jobId, record.type].map(storable)
  const about = subject === null ? null : storable(subject)
  await queries.rows(RECORD_ACT, who, reason, action, jobId, type, before, after, about)
}

async function readAudit(queries: Queries, filter: AuditFilter): Promise<AuditEntry[]> {
  const { jobId, who, action, before, limit } = filter
  const rows = await queries.rows<Parameters<typeof toAuditEntry>[0] & { readonly at_ms: number }>(
    LIST_AUDIT,
    jobId ?? null,
    who ?? null,
    action ?? null,
    before ?? null,
    Number.isFinite(limit) ? limit : null,
  )
  return rows.map((row) => toAuditEntry(row, row.at_ms))
}
