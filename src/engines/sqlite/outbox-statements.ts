/** The statements of the outbox. */

export const ADD_OUTBOUND = `
INSERT INTO millrace_outbox (outbox, id, job, added_at_ms) VALUES (:name, :id, :job, :now)`

/** The first one comes whatever its size. */
export const FIRST_OUTBOUND = `
SELECT seq, job FROM (
  SELECT seq, job, octet_length(job) AS bytes, sum(octet_length(job)) OVER (ORDER BY seq) AS total
  FROM (SELECT seq, job FROM millrace_outbox WHERE outbox = :name ORDER BY seq LIMIT :max)
)
WHERE total <= :bytesMax OR total = bytes
ORDER BY seq`

/** SQLite gives the number of a row that is gone to a new one, so the id must be the same too. */
export const REMOVE_OUTBOUND = `DELETE FROM millrace_outbox WHERE seq = :seq AND outbox = :name AND id = :id`

export const SIZE_OUTBOUND = `
SELECT count(*) AS jobs, min(added_at_ms) AS oldest_ms FROM millrace_outbox WHERE outbox = :name`

export const LIST_OUTBOXES = `
SELECT outbox AS name, count(*) AS jobs, :now - min(added_at_ms) AS oldestMs FROM millrace_outbox GROUP BY outbox ORDER BY outbox`
