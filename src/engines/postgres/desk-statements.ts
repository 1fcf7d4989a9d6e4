/** The statements of the dead-letter desk. */
import { viewColumns } from './inspect-statements.ts'
import type { Names } from './names.ts'
import { event, LIVE, ms, NOW, UNLEASED } from './statements.ts'

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

/** The lock keeps an enqueue of a newer version before or after a replay. */
export const FIND_LATEST_SEQ = ({ latest }: Names): string =>
  `SELECT seq::float8 AS seq, ${NOW} AS now FROM ${latest} WHERE type = $2 AND latest_key = $3 FOR UPDATE`

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
