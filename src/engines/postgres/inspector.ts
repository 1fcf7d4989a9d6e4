import type { Controls, Counts, Inspector, TypeCounts } from '../../engine/engine.ts'
import { waitUntilFinished } from '../../engine/wait-until-finished.ts'
import { storable } from '../../job/error-record.ts'
import type { JobState } from '../../job/states.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { successorsOf } from './dependencies.ts'
import { DUE, event, LIVE, ms, NOW, UNLEASED, viewColumns } from './fragments.ts'
import { readHistory } from './history.ts'
import type { Names } from './names.ts'
import { inState, type Newest, newestIds } from './newest.ts'
import { toView, type ViewRow } from './rows.ts'
import { searchStep } from './search.ts'

export const FIND_JOBS = ({ jobs }: Names): string =>
  `SELECT ${viewColumns('job')}, ${NOW} AS now FROM ${jobs} AS job WHERE job.id::text = ANY($2::text[])`

/** The lock puts two acts on one job in sequence. Rows are locked in one order, so that two calls do not deadlock. */
export const LOCK_JOBS = (names: Names): string => `${FIND_JOBS(names)} ORDER BY job.id::text FOR UPDATE`

type Statement = (names: Names) => string

const LISTS = new Map<string, Statement>()

/** Newest first. $2: how many; then the type and the id of the job before, where they are given. Null: there are none. */
export function listJobs(
  state: JobState | undefined,
  given: { readonly type: boolean; readonly before: boolean },
): Statement | null {
  if (state !== undefined && inState(state) === null) return null
  const key = `${state} ${given.type} ${given.before}`
  const known = LISTS.get(key)
  if (known !== undefined) return known
  const before = `$${given.type ? 4 : 3}`
  const newest: Newest = {
    ...{ state, type: given.type ? '$3' : null, limit: '$2' },
    within: (id) => (given.before ? `${id} < ${before}` : 'true'),
  }
  const statement: Statement = (names) => `
SELECT ${viewColumns('job')}, ${NOW} AS now FROM ${names.jobs} AS job
WHERE job.id::text = ANY(ARRAY(${newestIds(newest, names)})) ORDER BY job.id::text DESC`
  LISTS.set(key, statement)
  return statement
}

/** Reads all queued jobs: for operators, not for workers. */
export const OLDEST_DUE = ({ jobs }: Names): string => `
SELECT ${viewColumns('job')} FROM ${jobs} AS job
WHERE status = 'queued' AND type IS NOT NULL AND ${DUE} <= ${NOW} ORDER BY ${DUE}, arrival LIMIT 1`

export const COUNT_JOBS = ({ jobs }: Names): string => `
SELECT type,
  count(*) FILTER (WHERE status = 'queued' AND ${DUE} <= ${NOW} AND waiting_for = 0)::float8 AS ready,
  count(*) FILTER (WHERE status = 'queued' AND NOT (${DUE} <= ${NOW} AND waiting_for = 0))::float8 AS delayed,
  count(*) FILTER (WHERE status = 'processing')::float8 AS in_progress,
  count(*) FILTER (WHERE status = 'completed')::float8 AS completed,
  count(*) FILTER (WHERE status = 'failed' AND ended IS NULL)::float8 AS dead
FROM ${jobs} WHERE type IS NOT NULL GROUP BY type`

/** Ends a live job, held or not. */
export const CANCEL = ({ jobs, events, eventIdType }: Names): string => `
WITH live AS MATERIALIZED (
  SELECT id, attempt_count, started_at, status FROM ${jobs} WHERE id::text = $2 AND ${LIVE} FOR UPDATE),
ended AS (
  UPDATE ${jobs} AS job SET status = 'failed', ended = 'cancelled', completed_at = ${NOW}, ${UNLEASED}
  FROM live WHERE job.id = live.id),
recorded AS (
  INSERT INTO ${events} (job_id, data)
  SELECT id::text::${eventIdType}, ${event(
    { type: `'cancelled'`, attempt: 'attempt_count', worker: 'NULL' },
    `jsonb_build_object('who', $3::text, 'reason', $4::text, 'startedAtMs', ${ms('started_at')})`,
  )} FROM live)
SELECT id::text AS id FROM live`

export async function findRow(queries: Queries, id: string): Promise<ViewRow | null> {
  return (await queries.rows<ViewRow>(FIND_JOBS, [id]))[0] ?? null
}

export function createInspector(core: PostgresCore): Inspector {
  return {
    async find(ids) {
      if (ids.length === 0) return []
      const rows = await core.call('find', (database) => database.rows<ViewRow>(FIND_JOBS, ids))
      const views = new Map(rows.map((row) => [row.id, toView(row)]))
      return ids.map((id) => views.get(id) ?? null)
    },
    async list(filter) {
      const { state, type, before, limit } = filter
      const statement = listJobs(state, { type: type !== undefined, before: before !== undefined })
      if (statement === null) return []
      const values = [limit, type, before].filter((value) => value !== undefined)
      return (await core.call('list', (database) => database.rows<ViewRow>(statement, ...values))).map(toView)
    },
    search: (search, step) => core.call('search', (database) => searchStep(database, search, step)),
    async oldestDue() {
      const [row] = await core.call('oldestDue', (database) => database.rows<ViewRow>(OLDEST_DUE))
      return row === undefined ? null : toView(row)
    },
    history: (id) =>
      core.call('history', async (database) => {
        const row = await findRow(database, id)
        return row === null ? [] : readHistory(database, row)
      }),
    successors: async (ids) => {
      const found = await core.call('successors', (database) => successorsOf(database, ids))
      return found.map(({ id }) => id)
    },
    waitFor(id, wait) {
      const read = async () => {
        const seen = core.results.changes
        const row = await core.call('find', (database) => findRow(database, id))
        const changed = (ms: number): Promise<void> => core.results.wait(ms, { seen, signal: wait.signal })
        return { view: row === null ? null : toView(row), changed }
      }
      return waitUntilFinished({ clock: core.clock, removedViews: core.removedViews, read }, id, wait)
    },
  }
}

interface CountRow {
  readonly type: string
  readonly ready: number
  readonly delayed: number
  readonly in_progress: number
  readonly completed: number
  readonly dead: number
}

export async function countJobs(core: PostgresCore): Promise<Counts> {
  const rows = await core.call('counts', (database) => database.rows<CountRow>(COUNT_JOBS))
  return Object.fromEntries(
    rows.map(({ type, in_progress: inProgress, ready, delayed, completed, dead }): [string, TypeCounts] => [
      type,
      { ready, delayed, inProgress, completed, dead },
    ]),
  )
}

export function createControls(core: PostgresCore): Controls {
  return {
    async cancel(id, { who, reason }) {
      const ended = await core.call('cancel', (database) => database.rows(CANCEL, id, storable(who), storable(reason)))
      if (ended.length === 0) return false
      core.changed()
      return true
    },
  }
}
