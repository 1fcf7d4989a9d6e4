/** Parts of SQL that several statements share. Values are parameters; `:now` comes from the injected clock. */

/** The columns that a worker needs. `JobColumns` in rows.ts has the same order. */
export const JOB_COLUMNS = `rowid, id, type, priority, scheduled_at, payload, payload_version, attempts, max_retries, created_at,
  idempotency_key, latest_key, tenant, options, predecessors`

/** The fence: a late holder must not change a job that has a new token or whose lease ran out. */
export const HELD = `id = :id AND lease_token = :token AND status = 'in_progress' AND lease_until > :now`

/** Ends a lease. Every statement that takes a job from its holder contains it. */
export const UNLEASED = `lease_owner = NULL, lease_until = NULL, lease_token = NULL, updated_at = :now`

/** Frees the idempotency key for the next job and keeps it for a replay. */
export const KEY_RELEASED = `released_key = coalesce(idempotency_key, released_key), idempotency_key = NULL`

export const VIEW_COLUMNS = `${JOB_COLUMNS}, status, ended, progress, result, error, error_record, lease_owner, lease_until,
  updated_at, started_at, completed_at, completed_by, duration_ms, released_key, latest_seq, replays`
