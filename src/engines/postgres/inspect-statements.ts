/** The statements of those who look at jobs, and of those who cancel them. */
import type { Names } from './names.ts'
import { DUE, event, jobColumns, LIVE, ms, NOW, UNLEASED } from './statements.ts'

export function viewColumns(job: string): string {
  return `${jobColumns(job)}, ${job}.status, ${job}.ended, ${job}.progress, ${job}.result, ${job}.fail_code,
  ${job}.fail_reason, ${job}.error_record, ${job}.locked_by, ${ms(`${job}.updated_at`)} AS updated_ms,
  ${ms(`${job}.started_at`)} AS started_ms, ${ms(`${job}.completed_at`)} AS completed_ms, ${job}.completed_by,
  ${job}.duration_ms::float8 AS duration_ms, ${job}.latest_seq::float8 AS latest_seq, ${job}.replays`
}

export const FIND_JOBS = ({ jobs }: Names): string =>
  `SELECT ${viewColumns('job')}, ${NOW} AS now FROM ${jobs} AS job WHERE job.id::text = ANY($2::text[])`

/** The lock lets one of two callers that act on a job come first. In one order, so that they do not wait for each other. */
export const LOCK_JOBS = (names: Names): string => `${FIND_JOBS(names)} ORDER BY job.id::text FOR UPDATE`

type Statement = (names: Names) => string

const LISTS = new Map<string, Statement>()

/**
 * Newest first. The status is one of our own words and stands in the text, so that the server plans by how many there are
 * of it: a rare one by its index, a frequent one along the ids.
 */
export function listJobs(
  status: string | null,
  given: { readonly type: boolean; readonly before: boolean },
): Statement {
  const key = `${status} ${given.type} ${given.before}`
  const known = LISTS.get(key)
  if (known !== undefined) return known
  const conditions = [
    'job.type IS NOT NULL',
    status !== null && `job.status = '${status}'`,
    given.type && 'job.type = $3',
    given.before && `job.id::text < $${given.type ? 4 : 3}`,
  ]
  const statement: Statement = ({ jobs }) => `
SELECT ${viewColumns('job')}, ${NOW} AS now FROM ${jobs} AS job
WHERE ${conditions.filter(Boolean).join(' AND ')} ORDER BY job.id::text DESC LIMIT $2`
  LISTS.set(key, statement)
  return statement
}

/** Reads all that are queued: for those who look, not for those who work. */
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

export const READ_EVENTS = ({ events }: Names): string =>
  `SELECT data, ${NOW} AS now FROM ${events} WHERE job_id::text = $2 AND coalesce(data ->> 'table', 'jobs') = 'jobs' ORDER BY seq`

/** A live job ends, whoever holds it. */
export const CANCEL = ({ jobs, events, eventIdType }: Names): string => `
WITH live AS MATERIALIZED (
  SELECT id, attempt_count, started_at, status FROM ${jobs} WHERE id::text = $2 AND ${LIVE} FOR UPDATE),
ended AS (
  UPDATE ${jobs} AS job SET status = 'failed', ended = 'cancelled', completed_at = ${NOW}, ${UNLEASED}
  FROM live WHERE job.id = live.id),
noted AS (
  INSERT INTO ${events} (job_id, data)
  SELECT id::text::${eventIdType}, ${event(
    { type: `'cancelled'`, attempt: 'attempt_count', worker: 'NULL' },
    `jsonb_build_object('who', $3::text, 'reason', $4::text, 'startedAtMs', ${ms('started_at')})`,
  )} FROM live)
SELECT id::text AS id FROM live`
