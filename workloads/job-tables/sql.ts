import type { Shape } from './shape.ts'

/*
 * What the statements share. Every statement is one transaction with one time: the given one, or the server's. Results
 * are text. An id parameter takes the column's type: uuid, bigint or text.
 */

/** The statement's time. Materialized, because with a volatile clock Postgres could not use the index on leases. */
export const moment = (parameter: string): string =>
  `moment as materialized (select coalesce(${parameter}::timestamptz, clock_timestamp()) as at)`
export const AT = '(select at from moment)'

export const epochMs = (time: string): string => `(extract(epoch from ${time}) * 1000)::float8::text`

/** The format of toISOString. */
export const ISO = `to_char(${AT} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** `requeueDelayMs` in SQL. The exponent is bounded because 2^1024 overflows a double; 2^62 ms exceeds every maximum. */
export const requeueDelay = (base: string, max: string): string =>
  `least(${base}::float8 * power(2, least(greatest(job.attempt_count, 1) - 1, 62)), ${max}::float8) * interval '1 millisecond'`

/** When a queued job may run. The engine's table also has `run_at`; the later time counts, and greatest ignores nulls. */
export const dueAt = ({ hasRunAt }: Shape): string =>
  hasRunAt ? 'greatest(job.run_at, job.next_earliest_run_at)' : 'job.next_earliest_run_at'

export const isDue = (shape: Shape): string => `job.status = 'queued' and coalesce(${dueAt(shape)} <= ${AT}, true)`

/** Set when a job ends in the engine's table; a user's column is not written. */
export const endedAt = ({ isMillrace }: Shape, time = AT): string => (isMillrace ? `, completed_at = ${time}` : '')

/**
 * The fence: a late worker must not touch a job that has a new owner, or whose lease has ended. A worker or an attempt that
 * is null is not compared.
 */
export const held = (worker: string, attempt: string): string =>
  `job.status = 'processing' and (${worker}::text is null or job.locked_by = ${worker}) and job.lease_expires_at >= ${AT}
  and (${attempt}::int is null or job.attempt_count = ${attempt}::int)`

/** Events of reapers and operators, in the words of the index on them: the planner compares the texts. */
export const IS_SUPERVISION = `(data ->> 'type') ~ '^(reaper|operator):'`
