/** The statements of retention; no index is there for them alone, because every job would pay for it. */

import { IS_AWAITED } from './dependency-statements.ts'

/** Row numbers grow with arrival; reading takes no lock. */
export const WALK = `
SELECT rowid, id, type, status, ended, completed_at FROM job_queue WHERE rowid > :from ORDER BY rowid LIMIT :max`

export const IS_KEPT_FOR_OTHERS = `SELECT 1 AS found FROM job_queue WHERE id = :id AND ${IS_AWAITED}`

/** Rows are [rowid, id, completed_at]: what has changed since it was looked at stays. */
export const REMOVE_FINISHED = `
DELETE FROM job_queue WHERE rowid IN (
  SELECT job_queue.rowid FROM json_each(:rows) AS gone CROSS JOIN job_queue ON job_queue.rowid = gone.value ->> 0
  WHERE job_queue.id = gone.value ->> 1 AND completed_at = gone.value ->> 2 AND NOT ${IS_AWAITED}
    AND (status = 'completed' OR (status = 'dead_letter' AND ended IN ('cancelled', 'superseded'))))
RETURNING id`

export const REMOVE_EVENTS_OF = `DELETE FROM job_events WHERE job_id IN (SELECT value FROM json_each(:ids))`

/** All but the newest of a type, the newest first. The ended ones have the same state as dead letters and are none. */
export const FIND_BEYOND = `
SELECT rowid, id, completed_at, options, ${IS_AWAITED} AS awaited FROM job_queue INDEXED BY idx_job_queue_type
WHERE type = :type AND status = :status AND ended IS NULL ORDER BY rowid DESC LIMIT :max OFFSET :keep`

/** Jobs that have just finished, but for those whose place a newer version of their latest key took. */
export const FIND_FINISHED = `
SELECT rowid, id, completed_at, ${IS_AWAITED} AS awaited FROM job_queue
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = :status AND ended IS NULL`

/** The next keys after one, and whether a job of each may still run: one that waits, runs, or may be replayed. */
const LATEST = `
SELECT type, latest_key, idle_since, EXISTS (
  SELECT 1 FROM job_queue WHERE job_queue.type = job_latest.type AND job_queue.latest_key = job_latest.latest_key
    AND (status <> 'completed' AND ended IS NULL OR ended = 'discarded')) AS used
FROM job_latest`
export const FIND_LATEST_KEY = `${LATEST} WHERE type = :type AND latest_key = :latestKey`
export const WALK_LATEST = `
${LATEST} WHERE (type, latest_key) > (:type, :latestKey) ORDER BY type, latest_key LIMIT :max`

export const MARK_LATEST = `UPDATE job_latest SET idle_since = :idleSince WHERE type = :type AND latest_key = :latestKey`
export const FORGET_LATEST = `DELETE FROM job_latest WHERE type = :type AND latest_key = :latestKey`

export const PAGES = `
SELECT page_count AS pages, freelist_count AS free, page_size AS bytes, auto_vacuum AS vacuum
FROM pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum`

/** Moves the last pages of the file into free ones before them. */
export function vacuumPages(count: number): string {
  return `PRAGMA incremental_vacuum(${count})`
}
