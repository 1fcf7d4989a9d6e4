/** Every statement of the SQLite engine. Values are parameters; `:now` and the like come from the injected clock. */

/** What a worker needs of a job. `JobColumns` in rows.ts has the same order. */
const JOB_COLUMNS = `rowid, id, type, priority, scheduled_at, payload, payload_version, attempts, max_retries, created_at,
  idempotency_key, latest_key, tenant, options, predecessors`

/** No token, no effect: a late holder must not touch a job that has a new one, nor one whose lease ran out (I3). */
const HELD = `id = :id AND lease_token = :token AND status = 'in_progress' AND lease_until > :now`

/** Ends a lease. Every statement that takes a job from its holder contains it (X105). */
export const UNLEASED = `lease_owner = NULL, lease_until = NULL, lease_token = NULL, updated_at = :now`

/** Frees the idempotency key for the next job (X093) and remembers it for a replay. */
const KEY_RELEASED = `released_key = coalesce(idempotency_key, released_key), idempotency_key = NULL`

// Enqueue ------------------------------------------------------------------------------------------------------------

/** Jobs that differ only in id and payload, many in one statement: two bindings per row instead of nine. */
export function insertAlike(count: number): string {
  const row = `(?, ?, :type, :priority, :due, :attempts, :version, :now, :now)`
  return `INSERT INTO job_queue (id, payload, type, priority, scheduled_at, max_retries, payload_version, created_at, updated_at)
VALUES ${Array.from({ length: count }, () => row).join(', ')} ON CONFLICT DO NOTHING`
}

export const INSERT_ONE = `
INSERT INTO job_queue (rowid, id, type, payload, payload_version, priority, scheduled_at, max_retries, created_at,
  updated_at, idempotency_key, latest_key, latest_seq, waiting_for, tenant, options, predecessors)
VALUES (:rowid, :id, :type, :payload, :version, :priority, :due, :attempts, :now, :now,
  :key, :latestKey, :latestSeq, :waitingFor, :tenant, :options, :predecessors)
ON CONFLICT DO NOTHING`

export const FIND_ID = `SELECT id FROM job_queue WHERE id = :id`
/** The column is unique whatever the state, so also a job that another program has finished may be in the way. */
export const FIND_BY_KEY = `
SELECT id, status IN ('completed', 'dead_letter') AS finished FROM job_queue WHERE idempotency_key = :key`
export const RELEASE_KEY = `
UPDATE job_queue SET ${KEY_RELEASED} WHERE idempotency_key = :key AND status IN ('completed', 'dead_letter')`

/** Takes the next number of a latest key, or the given one if it is above all before it; no row comes back when it is stale. */
export const TAKE_LATEST_SEQ = `
INSERT INTO job_latest (type, latest_key, seq) VALUES (:type, :latestKey, coalesce(:seq, 1))
ON CONFLICT (type, latest_key) DO UPDATE SET seq = coalesce(:seq, job_latest.seq + 1), idle_since = NULL
WHERE :seq IS NULL OR :seq > job_latest.seq
RETURNING seq`

/** At most one waits and one runs: the rules of enqueue and settle keep it so. */
export const FIND_LATEST = `
SELECT rowid, id, status, scheduled_at, attempts FROM job_queue
WHERE type = :type AND latest_key = :latestKey AND status IN ('queued', 'in_progress')`

/** It leaves its row number, and with that its place among jobs of the same time, to the job that replaces it. */
export const SUPERSEDE_WAITING = `
UPDATE job_queue SET rowid = (SELECT max(rowid) + 1 FROM job_queue), status = 'dead_letter', ended = 'superseded', completed_at = :now, ${KEY_RELEASED}, ${UNLEASED}
WHERE id = :id AND status = 'queued'`

// Claim --------------------------------------------------------------------------------------------------------------

/** The earliest due time of each (type, priority) that has claimable jobs: one index seek each, whatever else is stored. */
export const PEEK = `
SELECT type, priority, due FROM (
  SELECT types.value AS type, ranks.value AS priority,
    (SELECT scheduled_at FROM job_queue INDEXED BY idx_job_queue_claim
      WHERE type = types.value AND priority = ranks.value AND status = 'queued' AND waiting_for = 0
      ORDER BY scheduled_at LIMIT 1) AS due
  FROM json_each('[1,2,3,4,5,6,7,8,9,10]') AS ranks CROSS JOIN json_each(:types) AS types)
WHERE due IS NOT NULL ORDER BY priority`

/** The first due jobs of one type and priority. */
export const READ_LANE = `
SELECT ${JOB_COLUMNS} FROM job_queue INDEXED BY idx_job_queue_claim
WHERE type = :type AND priority = :priority AND status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now
ORDER BY scheduled_at, rowid LIMIT :max`

/** The same from the index alone, for merging several types of one priority. */
export const PROBE = `
SELECT rowid, scheduled_at, type FROM job_queue INDEXED BY idx_job_queue_claim
WHERE type = :type AND priority = :priority AND status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now
ORDER BY scheduled_at, rowid LIMIT :max`

export const READ_ROWS = `SELECT ${JOB_COLUMNS} FROM job_queue WHERE rowid IN (SELECT value FROM json_each(:rows))`

/** Counting happens where the start happens, so a crash counts (I2). */
export const LEASE_ROWS = `
UPDATE job_queue SET status = 'in_progress', lease_owner = :worker, lease_until = :until, lease_token = :token,
  started_at = :now, updated_at = :now, attempts = attempts + 1
WHERE rowid IN (SELECT value FROM json_each(:rows))`

export const BURY_EXHAUSTED = `
UPDATE job_queue SET status = 'dead_letter', completed_at = :now, error = :error, ${KEY_RELEASED}, ${UNLEASED} WHERE rowid = :rowid`

export const FIND_EXPIRED = `
SELECT ${JOB_COLUMNS}, lease_owner, started_at FROM job_queue INDEXED BY idx_job_queue_lease_expiry
WHERE status = 'in_progress' AND lease_until <= :now AND (:only IS NULL OR type IN (SELECT value FROM json_each(:only)))
ORDER BY lease_until LIMIT :max`

/** The start was counted when it was made: the reaper's lease counts nothing. */
export const LEASE_EXPIRED = `
UPDATE job_queue SET lease_owner = :worker, lease_until = :until, lease_token = :token, updated_at = :now
WHERE rowid IN (SELECT value FROM json_each(:rows))`

export const NEXT_EXPIRY = `
SELECT min(lease_until) AS due FROM job_queue INDEXED BY idx_job_queue_lease_expiry WHERE status = 'in_progress'`

export const COUNT_STARTS = `
SELECT coalesce(sum(starts), 0) AS starts, min(at_ms) AS oldest_ms FROM job_starts WHERE type = :type AND at_ms > :sinceMs`
/** What a claim has recorded counts from now. */
export const MOVE_STARTS = `UPDATE job_starts SET at_ms = :nowMs WHERE type = :type AND at_ms >= :sinceMs AND at_ms < :nowMs`
export const FORGET_STARTS = `DELETE FROM job_starts WHERE type = :type AND at_ms <= :sinceMs`
export const RECORD_STARTS = `INSERT INTO job_starts (type, at_ms, starts) VALUES (:type, :nowMs, :starts)`

// Settle -------------------------------------------------------------------------------------------------------------

/** Many completions in one statement. Rows are [rowid, token, result, durationMs]; keyed jobs go through COMPLETE_ONE. */
export const COMPLETE_MANY = `
UPDATE job_queue SET status = 'completed', result = done.value ->> 2, duration_ms = done.value ->> 3,
  completed_at = :now, completed_by = lease_owner, error = NULL, ${UNLEASED}
FROM json_each(:done) AS done
WHERE job_queue.rowid = done.value ->> 0 AND lease_token = done.value ->> 1
  AND status = 'in_progress' AND lease_until > :now`

export const COMPLETE_ONE = `
UPDATE job_queue SET status = 'completed', result = :result, duration_ms = :durationMs, completed_at = :now,
  completed_by = lease_owner, error = NULL,
  ${KEY_RELEASED}, ${UNLEASED}
WHERE ${HELD}`

export const RETRY_ONE = `
UPDATE job_queue SET status = 'queued', scheduled_at = :due, started_at = NULL, error = :error, error_record = :record, ${UNLEASED}
WHERE ${HELD}`

export const BURY_ONE = `
UPDATE job_queue SET status = 'dead_letter', completed_at = :now, error = :error, error_record = :record,
  ${KEY_RELEASED}, ${UNLEASED}
WHERE ${HELD}`

/** Without a delay the job keeps its place in the queue. */
export const RELEASE_ONE = `
UPDATE job_queue SET status = 'queued', attempts = attempts - 1, scheduled_at = coalesce(:due, scheduled_at), started_at = NULL, ${UNLEASED}
WHERE ${HELD}`

/** An older version of a latest key whose newer one waits is not run again. */
export const SUPERSEDE_HELD = `
UPDATE job_queue SET status = 'dead_letter', ended = 'superseded', completed_at = :now, error = :error, error_record = :record,
  ${KEY_RELEASED}, ${UNLEASED}
WHERE ${HELD}`

/** The newer job of a latest key may run once the older one is out of the way. */
export const UNBLOCK_LATEST = `
UPDATE job_queue SET waiting_for = 0, updated_at = :now
WHERE type = :type AND latest_key = :latestKey AND status = 'queued' AND waiting_for > 0`

export const READ_START = `SELECT started_at FROM job_queue WHERE id = :id`

export const REPORT = `UPDATE job_queue SET progress = :progress, updated_at = :now WHERE ${HELD}`

/** Rows are [rowid, token]. */
export const RENEW_MANY = `
UPDATE job_queue SET lease_until = :until, updated_at = :now FROM json_each(:held) AS held
WHERE job_queue.rowid = held.value ->> 0 AND lease_token = held.value ->> 1
  AND status = 'in_progress' AND lease_until > :now`

export const RENEW_ONE = `UPDATE job_queue SET lease_until = :until, updated_at = :now WHERE ${HELD}`

/** Which of the held leases, [id, token], are gone. */
export const FIND_LOST = `
SELECT held.value ->> 0 AS id, held.value ->> 1 AS token FROM json_each(:held) AS held
LEFT JOIN job_queue ON job_queue.id = held.value ->> 0
WHERE job_queue.lease_token IS NOT held.value ->> 1`

export const WHY_LOST = `SELECT ended FROM job_queue WHERE id = :id`

// Inspect and operate ------------------------------------------------------------------------------------------------

export const VIEW_COLUMNS = `${JOB_COLUMNS}, status, ended, progress, result, error, error_record, lease_owner, lease_until,
  updated_at, started_at, completed_at, completed_by, duration_ms, released_key, latest_seq, replays`

export const FIND_JOB = `SELECT ${VIEW_COLUMNS} FROM job_queue WHERE id = :id`

/** Types that have jobs. One probe per type on the index, however many jobs there are. */
export const TYPES = `
WITH RECURSIVE types(type) AS (
  SELECT min(type) FROM job_queue
  UNION ALL
  SELECT (SELECT min(type) FROM job_queue WHERE type > types.type) FROM types WHERE types.type IS NOT NULL)
SELECT type FROM types WHERE type IS NOT NULL`

/** Where a page ends: the job itself, or the next below it when it has been removed since. */
export const PLACE_BEFORE = `
SELECT rowid - (id = :id) AS place FROM job_queue WHERE id <= :id ORDER BY id DESC LIMIT 1`

/** The newest up to a place. Rowids grow with arrival, and an index on a type and a state has its rowids in order. */
export const NEWEST = `SELECT rowid FROM job_queue WHERE rowid <= :place ORDER BY rowid DESC LIMIT :limit`
export const NEWEST_OF = `
SELECT rowid FROM job_queue INDEXED BY idx_job_queue_type
WHERE type = :type AND status = :state AND rowid <= :place ORDER BY rowid DESC LIMIT :limit`

export const VIEW_ROWS = `
SELECT ${VIEW_COLUMNS} FROM job_queue WHERE rowid IN (SELECT value FROM json_each(:rowids)) ORDER BY rowid DESC`

/** The first of each priority is one probe on the index; the oldest of these is read. */
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

export const COUNT_STATES = `SELECT type, status, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_type GROUP BY type, status`
export const COUNT_READY = `
SELECT type, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_claim
WHERE status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now GROUP BY type`
/** Due, but behind an older job of their latest key that is in flight. */
export const COUNT_HELD_BACK = `
SELECT type, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_latest
WHERE latest_key IS NOT NULL AND status = 'queued' AND waiting_for > 0 AND scheduled_at <= :now GROUP BY type`
export const COUNT_DEAD = `
SELECT type, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_dead
WHERE status = 'dead_letter' AND ended IS NULL GROUP BY type`

export const END_LIVE = `
UPDATE job_queue SET status = 'dead_letter', ended = :ended, completed_at = :now, ${KEY_RELEASED}, ${UNLEASED}
WHERE id = :id AND status IN ('queued', 'in_progress')`

export const RECORD_EVENT = `
INSERT INTO job_events (job_id, at, name, attempt, worker, detail) VALUES (:id, :now, :name, :attempt, :worker, :detail)`

/** All but the newest of a job's lines go. */
export const TRIM_EVENTS = `
DELETE FROM job_events WHERE job_id = :id AND seq <=
  (SELECT seq FROM job_events WHERE job_id = :id ORDER BY seq DESC LIMIT 1 OFFSET :kept)`

export const READ_EVENTS = `SELECT at, name, attempt, worker, detail FROM job_events WHERE job_id = :id ORDER BY seq`
