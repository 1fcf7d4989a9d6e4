/** What is done to the file when the wall clock was set; all other statements are in statements.ts. */

export const READ_CLOCK = `SELECT timeline, offset_ms, stepped_at_ms, step_ms FROM millrace_clock WHERE id = 1`

export const WRITE_CLOCK = `
INSERT INTO millrace_clock (id, timeline, offset_ms, stepped_at_ms, step_ms)
VALUES (1, :timeline, :offsetMs, :steppedAtMs, :stepMs)
ON CONFLICT (id) DO UPDATE SET timeline = excluded.timeline, offset_ms = excluded.offset_ms,
  stepped_at_ms = coalesce(excluded.stepped_at_ms, stepped_at_ms), step_ms = coalesce(excluded.step_ms, step_ms)`

/** A time that SQLite cannot read stays as it is. */
const shifted = (column: string): string => `coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, :shift), ${column})`

/** No lease gets longer than it was when it was written: what is left of it at most. One millisecond is for rounding. */
const WHOLE_LEASE = `coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', :now,
  printf('%+.3f seconds', unixepoch(lease_until, 'subsec') - unixepoch(updated_at, 'subsec') + 0.001)), lease_until)`

export const SHIFT_LEASES = `
UPDATE job_queue SET lease_until = min(${shifted('lease_until')}, ${WHOLE_LEASE}), updated_at = :now
WHERE status = 'in_progress' AND lease_until IS NOT NULL`

/** Jobs that were due stay due, and retries keep their delay; every other due time is a time of day. */
export const SHIFT_DUE = `
UPDATE job_queue SET scheduled_at = ${shifted('scheduled_at')}, updated_at = :now
WHERE status = 'queued' AND priority BETWEEN 1 AND 10 AND scheduled_at > :now
  AND (scheduled_at <= :was OR scheduled_at <= :far AND attempts > 0)`

export const SHIFT_STARTS = `UPDATE job_starts SET at_ms = at_ms + :stepMs`
export const SHIFT_LEADERS = `UPDATE millrace_leaders SET until_ms = until_ms + :stepMs`
export const SHIFT_PRESENCE = `UPDATE millrace_presence SET until_ms = until_ms + :stepMs`

/** After a start of the machine nobody knows what passed; what was written in the future cannot be waited for. */
export const CUT_LEASES = `
UPDATE job_queue SET lease_until = ${WHOLE_LEASE}, updated_at = :now
WHERE status = 'in_progress' AND lease_until > :now AND updated_at > :now`
export const CUT_STARTS = `UPDATE job_starts SET at_ms = :nowMs WHERE at_ms > :nowMs`
export const CUT_PRESENCE = `UPDATE millrace_presence SET until_ms = :nowMs WHERE at_ms > :nowMs AND until_ms > :nowMs`
