import type { Controls, Inspector, JobFilter } from '../../engine/engine.ts'
import { waitUntilFinished } from '../../engine/wait-until-finished.ts'
import type { JobView } from '../../job/job.ts'
import { type JobState, STORED_STATES, type StoredState, storedAs } from '../../job/states.ts'
import { toIso } from '../../time/iso.ts'
import type { SqliteCore, SqliteStore } from './core.ts'
import type { Connection } from './database.ts'
import { forgetPredecessors, reviewSuccessors, successorsOf } from './dependencies.ts'
import { readHistory, recordEvent } from './history.ts'
import { UNBLOCK_LATEST } from './latest-keys.ts'
import { KEY_RELEASED, toMs, toView, UNLEASED, VIEW_COLUMNS, type ViewRow } from './rows.ts'
import { searchStep } from './search.ts'

export const FIND_JOB = `SELECT ${VIEW_COLUMNS} FROM job_queue WHERE id = :id`

/** The types that have jobs: one index probe per type, however many jobs there are. */
export const TYPES = `
WITH RECURSIVE types(type) AS (
  SELECT min(type) FROM job_queue
  UNION ALL
  SELECT (SELECT min(type) FROM job_queue WHERE type > types.type) FROM types WHERE types.type IS NOT NULL)
SELECT type FROM types WHERE type IS NOT NULL`

/** Where a page ends: at the job, or at the next one below it if it was removed meanwhile. */
export const PLACE_BEFORE = `
SELECT rowid - (id = :id) AS place FROM job_queue WHERE id <= :id ORDER BY id DESC LIMIT 1`

/** The newest jobs up to a place. Rowids grow with arrival, and the index on type and state keeps them in order. */
export const NEWEST = `SELECT rowid FROM job_queue WHERE rowid <= :place ORDER BY rowid DESC LIMIT :limit`

export const NEWEST_OF = `
SELECT rowid FROM job_queue INDEXED BY idx_job_queue_type
WHERE type = :type AND status = :stored AND rowid <= :place ORDER BY rowid DESC LIMIT :limit`

/** Dead letters (`ended` is null), or the jobs that were ended in one way. They share a status. */
export const NEWEST_ENDED = `
SELECT rowid FROM job_queue INDEXED BY idx_job_queue_ended
WHERE status = 'dead_letter' AND type = :type AND ended IS :ended AND rowid <= :place ORDER BY rowid DESC LIMIT :limit`

export const VIEW_ROWS = `
SELECT ${VIEW_COLUMNS} FROM job_queue WHERE rowid IN (SELECT value FROM json_each(:rowids)) ORDER BY rowid DESC`

/** One index probe finds the first job of each priority. Only the oldest of these is read. */
export const OLDEST_DUE = `
WITH RECURSIVE priorities(priority) AS (
  SELECT min(priority) FROM job_queue INDEXED BY idx_job_queue_dequeue WHERE status = 'queued'
  UNION ALL
  SELECT (
    SELECT min(priority) FROM job_queue INDEXED BY idx_job_queue_dequeue
    WHERE status = 'queued' AND priority > priorities.priority)
  FROM priorities WHERE priorities.priority IS NOT NULL)
SELECT ${VIEW_COLUMNS} FROM job_queue WHERE rowid IN (
  SELECT (
    SELECT rowid FROM job_queue INDEXED BY idx_job_queue_dequeue
    WHERE status = 'queued' AND priority = priorities.priority AND scheduled_at <= :now
    ORDER BY scheduled_at, rowid LIMIT 1)
  FROM priorities)
ORDER BY scheduled_at, rowid LIMIT 1`

export const END_LIVE = `
UPDATE job_queue SET status = 'dead_letter', ended = :ended, completed_at = :now, ${KEY_RELEASED}, ${UNLEASED}
WHERE id = :id AND status IN ('queued', 'in_progress')`

export function findRow(core: Pick<SqliteStore, 'connection'>, id: string): ViewRow | undefined {
  return core.connection.prepare(FIND_JOB).get({ id }) as ViewRow | undefined
}

export function createInspector(core: SqliteCore): Inspector {
  const viewOf = (id: string): JobView | null => {
    const row = findRow(core, id)
    return row === undefined ? null : toView(row)
  }
  return {
    find: (ids) => core.read('find', () => ids.map(viewOf)),
    list: (filter: JobFilter) => core.read('list', () => listRows(core.connection, filter).map(toView)),
    search: (search, step) => core.read('search', () => searchStep(core.connection, search, step)),
    oldestDue: () =>
      core.read('oldestDue', () => {
        const now = toIso(core.clock.nowMs())
        const row = core.connection.prepare(OLDEST_DUE).get({ now }) as ViewRow | undefined
        return row === undefined ? null : toView(row)
      }),
    history: (id) =>
      core.read('history', () => {
        const row = findRow(core, id)
        return row === undefined ? [] : readHistory(core.connection, row)
      }),
    successors: (ids) => core.read('successors', () => successorsOf(core.connection, ids)),
    waitFor(id, wait) {
      const changed = (ms: number): Promise<void> => core.wakeups.wait(ms, wait.signal)
      const read = async () => ({ view: await core.read('find', () => viewOf(id)), changed })
      return waitUntilFinished({ clock: core.clock, removedViews: core.removedViews, read }, id, wait)
    },
  }
}

export function createControls(core: SqliteCore): Controls {
  return {
    async cancel(id, { who, reason }) {
      const cancelled = await core.write('cancel', () => {
        const row = findRow(core, id)
        const nowMs = core.clock.nowMs()
        const now = toIso(nowMs)
        const { changes } = core.connection.prepare(END_LIVE).run({ id, ended: 'cancelled', now })
        if (row === undefined || Number(changes) === 0) return false
        recordEvent(
          core.connection,
          {
            id,
            name: 'cancelled',
            attempt: row.attempts,
            worker: null,
            detail: { who, reason, startedAtMs: toMs(row.started_at) },
          },
          nowMs,
        )
        reviewSuccessors(core.connection, id, nowMs)
        if (row.predecessors !== null) forgetPredecessors(core.connection, id)
        if (row.latest_key !== null)
          core.connection.prepare(UNBLOCK_LATEST).run({ type: row.type, latestKey: row.latest_key, now })
        return true
      })
      if (cancelled) core.changed()
      return cancelled
    },
  }
}

/** Of rows with one. */
export function listRowids(rows: readonly unknown[]): readonly number[] {
  return (rows as readonly { readonly rowid: number }[]).map(({ rowid }) => rowid)
}

/**
 * One page, newest first. A page costs the same at a thousand and at ten million rows: each type and state has its jobs in
 * order on one index, so the newest of all are among the newest of each.
 */
export function listRows(connection: Connection, filter: JobFilter): ViewRow[] {
  const place = placeOf(connection, filter.before)
  if (place === null) return []
  const rowids = newest(connection, filter, place)
  return connection.prepare(VIEW_ROWS).all({ rowids: JSON.stringify(rowids) }) as ViewRow[]
}

/** Null when no job is below this one. */
export function placeOf(connection: Connection, before: string | undefined): number | null {
  if (before === undefined) return Number.MAX_SAFE_INTEGER
  const found = connection.prepare(PLACE_BEFORE).get({ id: before }) as { place: number } | undefined
  return found?.place ?? null
}

interface Narrow extends Pick<JobFilter, 'limit'> {
  readonly state?: JobState | undefined
  readonly type?: string | undefined
  /** Without those that have completed, which have no error. */
  readonly isFailed?: boolean
}

export function newest(connection: Connection, narrow: Narrow, place: number): readonly number[] {
  const { state, type, limit, isFailed = false } = narrow
  if (state === undefined && type === undefined && !isFailed)
    return listRowids(connection.prepare(NEWEST).all({ place, limit }))
  const types = type === undefined ? typesOf(connection) : [type]
  return types
    .flatMap((one) => listRowids(newestOf(connection, { type: one, place, limit }, state, isFailed)))
    .sort((a, b) => b - a)
    .slice(0, limit)
}

function newestOf(
  connection: Connection,
  page: { readonly type: string; readonly place: number; readonly limit: number },
  state: JobState | undefined,
  isFailed: boolean,
): readonly unknown[] {
  const statement = connection.prepare(NEWEST_OF)
  const newest = (stored: StoredState) => statement.all({ ...page, stored })
  const states = isFailed ? STORED_STATES.filter((stored) => stored !== 'completed') : STORED_STATES
  if (state === undefined) return states.flatMap(newest)
  const { stored, ended } = storedAs(state)
  if (stored !== 'dead_letter') return newest(stored)
  return connection.prepare(NEWEST_ENDED).all({ ...page, ended })
}

export function typesOf(connection: Connection): readonly string[] {
  return (connection.prepare(TYPES).all() as { type: string }[]).map(({ type }) => type)
}
