/** The statements of schedules and of the keeper's office; all others are in statements.ts. */

const SCHEDULE = `name, revision, next_at_ms, body`

export const LIST_SCHEDULES = `SELECT ${SCHEDULE} FROM millrace_schedules ORDER BY name`
export const FIND_SCHEDULE = `SELECT ${SCHEDULE} FROM millrace_schedules WHERE name = :name`
export const FIND_REVISION = `SELECT revision FROM millrace_schedules WHERE name = :name`

export const SAVE_SCHEDULE = `
INSERT INTO millrace_schedules (name, revision, next_at_ms, body) VALUES (:name, :revision, :nextAtMs, :body)
ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, next_at_ms = excluded.next_at_ms, body = excluded.body`

export const REMOVE_SCHEDULE = `DELETE FROM millrace_schedules WHERE name = :name`

/** A term that ends later than its lease allows was begun before the clock was set back: nobody waits for that. */
const HELD = `until_ms > :now AND until_ms <= :now + lease_ms`

export const FIND_LEADER = `SELECT holder, number, until_ms FROM millrace_leaders WHERE office = :office AND ${HELD}`

/** An office that is free again keeps its row without a holder, so that its number goes on growing. */
export const TAKE_OFFICE = `
INSERT INTO millrace_leaders (office, holder, number, lease_ms, until_ms)
VALUES (:office, :holder, 1, :leaseMs, :now + :leaseMs)
ON CONFLICT (office) DO UPDATE SET
  number = number + (holder IS NOT excluded.holder), holder = excluded.holder,
  lease_ms = excluded.lease_ms, until_ms = excluded.until_ms
WHERE holder IS excluded.holder OR NOT (${HELD})`

export const RESIGN = `UPDATE millrace_leaders SET holder = NULL, until_ms = 0 WHERE office = :office AND holder = :holder`
