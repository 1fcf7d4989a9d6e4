/**
 * What the diagnosis asks. No statement names an index: they must answer also where one is missing. Nothing walks all
 * finished jobs: a look at a large file stays short.
 */

export const NEWEST_ROWS = `SELECT id, created_at FROM job_queue ORDER BY rowid DESC LIMIT :max`

/** Rows of other programs that no claim finds: it compares times as text and looks for whole priorities. */
export const UNREADABLE_ROWS = `
SELECT id, priority, scheduled_at AS due FROM (SELECT id, priority, scheduled_at FROM job_queue WHERE status = 'queued' ORDER BY rowid DESC LIMIT :max)
WHERE typeof(priority) <> 'integer' OR typeof(scheduled_at) <> 'text' OR julianday(scheduled_at) IS NULL
  OR scheduled_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'`

export const COUNT_EXPIRED = `
SELECT count(*) AS jobs, min(lease_until) AS oldest FROM job_queue
WHERE status = 'in_progress' AND lease_until <= :before`

/** No expiry will ever find them: only another program writes such rows. */
export const COUNT_LEASELESS = `
SELECT count(*) AS jobs FROM job_queue WHERE status = 'in_progress' AND lease_until IS NULL`

export const COUNT_OVERDUE = `
SELECT type, count(*) AS jobs, min(scheduled_at) AS oldest FROM job_queue
WHERE status = 'queued' AND waiting_for = 0 AND scheduled_at <= :before GROUP BY type ORDER BY type`

/**
 * When a worker last showed itself for a type: now for a live lease, else the last start among the newest finished jobs
 * or the last failure or release among the newest events. A retried job's row no longer tells its start.
 */
export const LAST_SIGN = `
SELECT max(at) AS at FROM (
  SELECT CASE WHEN lease_until > :now THEN :now ELSE started_at END AS at FROM job_queue
  WHERE type = :type AND status = 'in_progress'
  UNION ALL
  SELECT at FROM (SELECT started_at AS at FROM job_queue WHERE type = :type AND status = 'completed'
    ORDER BY rowid DESC LIMIT :max)
  UNION ALL
  SELECT at FROM (SELECT started_at AS at FROM job_queue WHERE type = :type AND status = 'dead_letter'
    ORDER BY rowid DESC LIMIT :max)
  UNION ALL
  SELECT event.at FROM (SELECT job_id, at FROM job_events WHERE name IN ('failed', 'released')
    ORDER BY seq DESC LIMIT :max) AS event
  JOIN job_queue ON job_queue.id = event.job_id WHERE job_queue.type = :type)`
