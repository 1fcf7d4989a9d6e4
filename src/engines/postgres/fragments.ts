/** Truncated to milliseconds, so that callers read exactly what the row holds. */
export const NOW = `coalesce($1::timestamptz, date_trunc('milliseconds', statement_timestamp()))`

/** When a job is due. Must be written as in the index, or the index is not used. */
export const DUE = `greatest(run_at, next_earliest_run_at)`

export const CLAIMABLE = `status = 'queued' AND NOT blocked AND waiting_for = 0`

/** The tenant of a row; empty without one. */
export const TENANT = `coalesce(tenant ->> 'orgId', '') COLLATE "C"`

/** The rows of the index idx_jobs_slots: those without a tenant do not pay for it. */
export const HAS_TENANT = `${CLAIMABLE} AND tenant IS NOT NULL`

export const LIVE = `status IN ('queued', 'processing')`

/** Milliseconds since the epoch, as a JavaScript number. */
export function ms(expression: string): string {
  return `round(date_part('epoch', ${expression}) * 1000)`
}

/** What a priority counts as for a job that is due at a time. */
export type Rank = (priority: string, due: string) => string

/** `effectiveRank` of src/job/ageing.ts. A due time may be -infinity. */
export function agedBy(ageingMs: string): Rank {
  return (priority, due) =>
    `least(${priority}, greatest(1, ${priority} - floor((${ms(NOW)} - ${ms(due)}) / ${ageingMs}::float8)))`
}

export function after(delayMs: string): string {
  return `${NOW} + ${delayMs} * interval '1 millisecond'`
}

/** ISO-8601 in UTC with milliseconds, the form of times in `job_events`. */
export const NOW_ISO = `to_char(${NOW} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/**
 * The fence: a late holder must not change a job that has a new token or whose lease ran out. Rows are found by id:
 * `IS TRUE` keeps the planner from the index on status and lease, which is full of ended leases.
 */
export function held(job: string, given: string): string {
  return `${job}.id::text = ${given}.id AND ${owned(job, given)}
    AND (${job}.status = 'processing' AND ${job}.lease_expires_at > ${NOW}) IS TRUE`
}

/**
 * A token begins with its holder, so a program that only changes `locked_by` (by hand, or as the job tables do) fences out
 * the previous holder too.
 */
export function owned(job: string, given: string): string {
  return `${job}.lease_token = ${given}.token AND starts_with(${job}.lease_token, ${job}.locked_by || ' ')`
}

/** Ends a lease. Every statement that takes a job from its holder contains it. */
export function unleased(now: string): string {
  return `locked_by = NULL, lease_expires_at = NULL, lease_token = NULL, updated_at = ${now}`
}

export const UNLEASED: string = unleased(NOW)

/**
 * Rows of array parameters, whose number the planner does not know. Where it plans every execution (behind a pooler, or
 * the first five of a prepared statement), three hundred ids would make it scan the whole table and compare every row
 * with each of them: 90 ms instead of 6 with thirty thousand jobs.
 */
export function rowsFrom(...arrays: readonly string[]): string {
  return `unnest(${arrays.map((array) => `(SELECT ${array})`).join(', ')})`
}

/**
 * The order in which jobs are locked: first those in flight, by id in JavaScript's order, because a settle locks them that
 * way; then waiting ones, which the triggers of that settle reach last.
 */
export function lockOrder(job: string): string {
  return `${job}.status <> 'processing', ${job}.id::text COLLATE "C"`
}

/** The columns that a worker needs. `JobRow` in rows.ts has the same names. */
export function jobColumns(job: string): string {
  return `${job}.id::text AS id, ${job}.type, ${job}.payload::text AS payload, ${job}.payload_version, ${job}.priority,
  ${job}.attempt_count, ${job}.max_attempts, ${ms(`${job}.created_at`)} AS created_ms,
  ${ms(`greatest(${job}.run_at, ${job}.next_earliest_run_at)`)} AS run_ms, ${job}.arrival::float8 AS arrival,
  ${job}.idempotency_key, ${job}.latest_key, ${job}.tenant, ${job}.options, ${job}.after,
  ${ms(`${job}.lease_expires_at`)} AS expires_ms, ${job}.ctid::text AS place`
}

/** One row of `job_events`. */
export function event(
  names: { readonly type: string; readonly attempt: string; readonly worker: string },
  details: string,
): string {
  return `jsonb_build_object('type', ${names.type}, 'table', 'jobs', 'at', ${NOW_ISO}, 'attempt', ${names.attempt},
    'worker', ${names.worker}, 'details', ${details})`
}

export function viewColumns(job: string): string {
  return `${jobColumns(job)}, ${job}.status, ${job}.ended, ${job}.progress, ${job}.result, ${job}.fail_code,
  ${job}.fail_reason, ${job}.error_record, ${job}.locked_by, ${ms(`${job}.updated_at`)} AS updated_ms,
  ${ms(`${job}.started_at`)} AS started_ms, ${ms(`${job}.completed_at`)} AS completed_ms, ${job}.completed_by,
  ${job}.duration_ms::float8 AS duration_ms, ${job}.latest_seq::float8 AS latest_seq, ${job}.replays`
}
