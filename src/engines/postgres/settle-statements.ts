/** The statements of a holder: settle, renew, report. */
import { HISTORY_MAX } from '../../job/job.ts'
import type { Names } from './names.ts'
import { after, given, held, ms, NOW, NOW_ISO, owned, UNLEASED, unleased } from './statements.ts'

const COMPLETED = `status = 'completed', result = given.result::json, duration_ms = round(given.duration_ms),
  completed_at = (SELECT ${NOW}), completed_by = locked_by, fail_code = NULL, fail_reason = NULL, error_record = NULL,
  ${unleased(`(SELECT ${NOW})`)}`

/**
 * Completions whose tokens hold, of rows that are still where their claim has put them: nearly all. Others are not found,
 * and COMPLETE looks for them by id. What comes back is one row: how many, and which if not all of them.
 */
export const COMPLETE_THERE = ({ jobs }: Names): string => `
WITH done AS (
  UPDATE ONLY ${jobs} AS job SET bounded = false, ${COMPLETED}
  FROM ${given('$2::tid[]', '$3::text[]', '$4::text[]', '$5::float8[]', '$6::int[]')}
    WITH ORDINALITY AS given (place, id, result, duration_ms, fence, nth)
  CROSS JOIN LATERAL (SELECT ($7::text[])[given.fence] AS token) AS fence
  WHERE job.ctid = given.place AND job.id::text = given.id AND ${owned('job', 'fence')}
    AND (job.status = 'processing' AND job.lease_expires_at > (SELECT ${NOW})) IS TRUE
  RETURNING given.nth, job.awaited)
SELECT count(*)::int AS jobs, coalesce(bool_or(awaited), false) AS awaited,
  CASE WHEN count(*) < $8::int THEN array_agg(nth::int) END AS done FROM done`

/** Completions whose tokens hold; the ids of those come back. */
export const COMPLETE = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET bounded = given.bounded, ${COMPLETED}
FROM ${given('$2::text[]', '$3::text[]', '$4::text[]', '$5::float8[]', '$6::boolean[]')}
  AS given (id, token, result, duration_ms, bounded)
WHERE ${held('job', 'given')}
RETURNING given.id, given.token, job.awaited`

/** Lines of the table of jobs; other tables may have jobs of the same id. */
const OURS = (alias: string): string => `coalesce(${alias}.data ->> 'table', 'jobs') = 'jobs'`
/** As many lines as one outcome adds, which the statement itself does not see yet. */
const LINES_MAX = 2

const QUEUED_AGAIN = `held.kind IN ('retry', 'release')`
const DEFERRED = `(held.kind = 'retry' OR held.kind = 'release' AND held.delay_ms > 0)`

/**
 * Every other outcome whose token holds, each with its lines of history, of which the oldest go where there are too many; the ids of those come back. The first line of
 * each tells when the start was, because that leaves the row. Without a delay a released job keeps its place.
 */
export const SETTLE = ({ jobs, events, eventIdType }: Names): string => `
WITH held AS MATERIALIZED (
  SELECT given.*, job.started_at, job.awaited FROM ${jobs} AS job
  JOIN ${given('$2::text[]', '$3::text[]', '$4::text[]', '$5::float8[]', '$6::text[]', '$7::text[]', '$8::text[]', '$9::text[]', '$10::boolean[]')}
    AS given (id, token, kind, delay_ms, code, reason, record, lines, bounded) ON ${held('job', 'given')}
  FOR UPDATE OF job),
changed AS (
  UPDATE ${jobs} AS job SET
    status = CASE WHEN ${QUEUED_AGAIN} THEN 'queued' ELSE 'failed' END,
    ended = CASE WHEN held.kind = 'superseded' THEN 'superseded' END,
    attempt_count = attempt_count - CASE WHEN held.kind = 'release' THEN 1 ELSE 0 END,
    run_at = CASE WHEN ${DEFERRED} THEN ${after('held.delay_ms')} ELSE run_at END,
    next_earliest_run_at = CASE WHEN ${DEFERRED} THEN ${after('held.delay_ms')} END,
    started_at = CASE WHEN ${QUEUED_AGAIN} THEN NULL ELSE job.started_at END,
    completed_at = CASE WHEN ${QUEUED_AGAIN} THEN NULL ELSE ${NOW} END,
    fail_code = CASE WHEN held.kind = 'release' THEN fail_code ELSE held.code END,
    fail_reason = CASE WHEN held.kind = 'release' THEN fail_reason ELSE held.reason END,
    error_record = CASE WHEN held.kind = 'release' THEN error_record ELSE held.record::json END,
    bounded = held.bounded, ${UNLEASED}
  FROM held WHERE job.id::text = held.id),
noted AS (
  INSERT INTO ${events} (job_id, data)
  SELECT held.id::${eventIdType}, line.value || jsonb_build_object('table', 'jobs', 'at', ${NOW_ISO}) || CASE WHEN line.nth = 1 THEN
      jsonb_build_object('details', line.value -> 'details' || jsonb_build_object('startedAtMs', ${ms('held.started_at')}))
      ELSE '{}' END
  FROM held CROSS JOIN LATERAL jsonb_array_elements(held.lines::jsonb) WITH ORDINALITY AS line (value, nth)
  ORDER BY held.id, line.nth),
trimmed AS (
  DELETE FROM ${events} AS event USING held CROSS JOIN LATERAL (
    SELECT seq FROM ${events} AS line WHERE line.job_id = held.id::${eventIdType} AND ${OURS('line')}
    ORDER BY line.job_id DESC, line.seq DESC OFFSET ${HISTORY_MAX - LINES_MAX} LIMIT 1) AS oldest
  WHERE event.job_id = held.id::${eventIdType} AND event.seq <= oldest.seq AND ${OURS('event')})
SELECT id, token, awaited FROM held`

/** Whether a newer job of the latest key waits behind the one that is held, which this locks. */
export const FIND_NEWER = ({ jobs }: Names): string => `
SELECT newer.id::text AS id, ${NOW} AS now FROM ${jobs} AS newer
WHERE newer.type = $2 AND newer.latest_key = $3 AND newer.status = 'queued'`

export const LOCK_JOB = ({ jobs }: Names): string =>
  `SELECT id::text AS id, ${NOW} AS now FROM ${jobs} WHERE id::text = $2 FOR UPDATE`

/** Waits for nobody: a row that is being settled at this moment is looked at again by the caller. */
export const RENEW = ({ jobs }: Names): string => `
WITH held AS MATERIALIZED (
  SELECT given.id, given.token FROM ${jobs} AS job
  JOIN ${given('$2::text[]', '$3::text[]')} AS given (id, token) ON ${held('job', 'given')}
  FOR NO KEY UPDATE OF job SKIP LOCKED)
UPDATE ${jobs} AS job SET lease_expires_at = ${after('$4::float8')}, last_heartbeat_at = ${NOW}, updated_at = ${NOW}
FROM held WHERE job.id::text = held.id
RETURNING held.id, held.token`

/** The same for one, and it waits. */
export const RENEW_ONE = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET lease_expires_at = ${after('$4::float8')}, last_heartbeat_at = ${NOW}, updated_at = ${NOW}
FROM (SELECT $2::text AS id, $3::text AS token) AS given WHERE ${held('job', 'given')}
RETURNING job.id::text AS id`

export const REPORT = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET progress = $4::json, updated_at = ${NOW}
FROM (SELECT $2::text AS id, $3::text AS token) AS given WHERE ${held('job', 'given')}
RETURNING job.id::text AS id`

/** What has become of leases: whether each still holds, and why not. */
export const LOOK_AT_LEASES = ({ jobs }: Names): string => `
SELECT given.id, given.token, job.ended,
  coalesce(${owned('job', 'given')} AND job.status = 'processing', false) AS owned,
  coalesce(job.lease_expires_at > ${NOW}, false) AS alive
FROM ${given('$2::text[]', '$3::text[]')} AS given (id, token) LEFT JOIN ${jobs} AS job ON job.id::text = given.id`
