import type { Shape } from './shape.ts'

/*
 * Every statement is one transaction and has one moment: the time given, else the server's clock. Results are text.
 * `$1` stands for an id in the column's own type: ids may be uuid, bigint or text.
 */

/** A parameter's place as the moment. Materialized, because a volatile clock would keep the index on leases from use. */
export const moment = (parameter: string): string =>
  `moment as materialized (select coalesce(${parameter}::timestamptz, clock_timestamp()) as at)`
export const AT = '(select at from moment)'

export const epochMs = (time: string): string => `(extract(epoch from ${time}) * 1000)::float8::text`

/** X188: what toISOString gives. */
export const ISO = `to_char(${AT} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** The twin of requeueDelayMs. The exponent is bounded because 2^1024 is beyond a double; 2^62 ms is beyond every maximum. */
export const requeueDelay = (base: string, max: string): string =>
  `least(${base}::float8 * power(2, least(greatest(job.attempt_count, 1) - 1, 62)), ${max}::float8) * interval '1 millisecond'`

/**
 * When a queued job may run. Millrace's own table also has `run_at`, when a job was asked for; of two times the later
 * counts, and greatest ignores a null.
 */
export const dueAt = ({ hasRunAt }: Shape): string =>
  hasRunAt ? 'greatest(job.run_at, job.next_earliest_run_at)' : 'job.next_earliest_run_at'

/** X191. */
export const isDue = (shape: Shape): string => `job.status = 'queued' and coalesce(${dueAt(shape)} <= ${AT}, true)`

/** Set besides where a job ends for good; other people's columns are not written. */
export const endedAt = ({ isMillrace }: Shape, time = AT): string => (isMillrace ? `, completed_at = ${time}` : '')

/** No owner, no effect: a late worker must not touch a job that has a new one, nor one whose lease has ended (X171, X185). */
export const held = (worker: string, attempt: string): string =>
  `job.status = 'processing' and job.locked_by = ${worker} and job.lease_expires_at >= ${AT}
  and (${attempt}::int is null or job.attempt_count = ${attempt}::int)`
