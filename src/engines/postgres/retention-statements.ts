/** The statements of retention. */
import { isAwaited } from './dependency-statements.ts'
import type { Names } from './names.ts'
import { given, ms, NOW } from './statements.ts'

/** Ids of ours grow with arrival; the walk reads by the primary key and takes no lock. */
export const WALK = ({ jobs }: Names): string => `
SELECT id::text AS id, type, status, ended, ${ms('completed_at')} AS completed_ms, ${NOW} AS now
FROM ${jobs} AS jobs WHERE ($2::text IS NULL OR id::text > $2) AND type IS NOT NULL ORDER BY jobs.id::text LIMIT $3`

const GONE = `job.id::text = gone.id AND ${ms('job.completed_at')} = gone.completed_ms`
const GIVEN = `${given('$2::text[]', '$3::float8[]')} AS gone (id, completed_ms)`

/** What has changed since it was looked at stays. */
export const REMOVE_FINISHED = (names: Names): string => `
WITH removed AS (
  DELETE FROM ${names.jobs} AS job USING ${GIVEN}
  WHERE ${GONE} AND (job.status = 'completed' OR job.status = 'failed' AND job.ended IN ('cancelled', 'superseded'))
    AND NOT ${isAwaited(names)} AND ${NOW} IS NOT NULL
  RETURNING job.id),
forgotten AS (
  DELETE FROM ${names.events} AS event USING removed
  WHERE event.job_id::text = removed.id::text AND coalesce(event.data ->> 'table', 'jobs') = 'jobs')
SELECT id::text AS id FROM removed`

/** Those of the given ones that may go. */
export const FIND_REMOVABLE = (names: Names): string => `
SELECT job.id::text AS id, ${NOW} AS now FROM ${names.jobs} AS job JOIN ${GIVEN} ON ${GONE}
WHERE NOT ${isAwaited(names)}`

/** All but the newest of a type, of those that finished with a bound; the newest first. */
export const FIND_BEYOND = (names: Names): string => `
SELECT job.id::text AS id, ${ms('completed_at')} AS completed_ms, options, ${isAwaited(names)} AS awaited
FROM ${names.jobs} AS job
WHERE type = $2 AND status = $3 AND bounded AND status IN ('completed', 'failed') AND ended IS NULL AND ${NOW} IS NOT NULL
ORDER BY arrival DESC OFFSET $4 LIMIT $5`

/** Jobs that have just finished, but for those whose place a newer version of their latest key took. */
export const FIND_FINISHED = (names: Names): string => `
SELECT job.id::text AS id, ${ms('completed_at')} AS completed_ms, ${isAwaited(names)} AS awaited
FROM ${names.jobs} AS job
WHERE id::text = ANY ($2::text[]) AND status = $3 AND ended IS NULL AND ${NOW} IS NOT NULL`

/** A condition on `known`: one that waits, runs, or may be replayed. Each half has an index of its own. */
const isUsed = ({ jobs }: Names): string => `(
  EXISTS (SELECT 1 FROM ${jobs} AS job WHERE job.type = known.type AND job.latest_key = known.latest_key
    AND job.latest_key IS NOT NULL AND job.status IN ('queued', 'processing'))
  OR EXISTS (SELECT 1 FROM ${jobs} AS job WHERE job.type = known.type AND job.latest_key = known.latest_key
    AND job.latest_key IS NOT NULL AND job.status = 'failed' AND coalesce(job.ended, 'discarded') = 'discarded'))`

/**
 * The next latest keys after one: those that are idle are marked, those that have been for long are forgotten, and the last
 * one looked at comes back. It waits for nobody: a key that an enqueue holds at this moment is left for the next pass.
 */
export const FORGET_IDLE_LATEST = (names: Names): string => `
WITH walked AS MATERIALIZED (
  SELECT type, latest_key, seq, idle_since, ${isUsed(names)} AS used FROM ${names.latest} AS known
  WHERE (type, latest_key) > ($2::text, $3::text) ORDER BY type, latest_key LIMIT $4),
due AS MATERIALIZED (
  SELECT known.type, known.latest_key, walked.used, known.idle_since IS NOT NULL AS marked
  FROM ${names.latest} AS known JOIN walked ON walked.type = known.type AND walked.latest_key = known.latest_key
  WHERE known.seq = walked.seq AND (walked.used = (known.idle_since IS NOT NULL)
    OR NOT walked.used AND known.idle_since <= ${NOW} - make_interval(secs => $5::float8 / 1000))
  FOR UPDATE OF known SKIP LOCKED),
forgotten AS (
  DELETE FROM ${names.latest} AS known USING due
  WHERE known.type = due.type AND known.latest_key = due.latest_key AND due.marked AND NOT due.used),
marked AS (
  UPDATE ${names.latest} AS known SET idle_since = CASE WHEN due.used THEN NULL ELSE ${NOW} END FROM due
  WHERE known.type = due.type AND known.latest_key = due.latest_key AND due.marked = due.used)
SELECT type, latest_key, count(*) OVER ()::int AS looked FROM walked ORDER BY type DESC, latest_key DESC LIMIT 1`

/** What a row takes beside its texts, about. */
const ROW_BYTES = 400

/** What the rows hold, not the files: space that vacuum has not given back yet is free for the next jobs. */
export const USED_BYTES = ({ jobs }: Names): string => `
SELECT coalesce(sum(${ROW_BYTES} + coalesce(octet_length(payload::text), 0) + coalesce(octet_length(result::text), 0)), 0)::float8 AS bytes,
  ${NOW} AS now FROM ${jobs}`
