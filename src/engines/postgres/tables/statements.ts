import type { Shape } from './shape.ts'

/*
 * Every statement is one transaction and has one moment: the time given, else the server's clock. Results are text.
 * `$1` stands for an id in the column's own type: ids may be uuid, bigint or text.
 */

/** A parameter's place as the moment. Materialized, because a volatile clock would keep the index on leases from use. */
const moment = (parameter: string): string =>
  `moment as materialized (select coalesce(${parameter}::timestamptz, clock_timestamp()) as at)`
const AT = '(select at from moment)'

const epochMs = (time: string): string => `(extract(epoch from ${time}) * 1000)::float8::text`

/** X188: what toISOString gives. */
const ISO = `to_char(${AT} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** The twin of requeueDelayMs. The exponent is bounded because 2^1024 is beyond a double; 2^62 ms is beyond every maximum. */
const requeueDelay = (base: string, max: string): string =>
  `least(${base}::float8 * power(2, least(greatest(job.attempt_count, 1) - 1, 62)), ${max}::float8) * interval '1 millisecond'`

/** The columns of a table by its quoted name. None: there is no such table. */
export const COLUMNS_OF = `
select attrelid::oid::text as oid, attname::text as name, format_type(atttypid, null) as type
from pg_attribute
where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`

/** The schema that search_path leads to. */
export const SCHEMA_OF = `
select nspname::text as schema from pg_class join pg_namespace on pg_namespace.oid = relnamespace
where pg_class.oid = to_regclass($1)`

/**
 * When a queued job may run. Millrace's own table also has `run_at`, when a job was asked for; of two times the later
 * counts, and greatest ignores a null.
 */
const dueAt = ({ hasRunAt }: Shape): string =>
  hasRunAt ? 'greatest(job.run_at, job.next_earliest_run_at)' : 'job.next_earliest_run_at'

/** X191. */
const isDue = (shape: Shape): string => `job.status = 'queued' and coalesce(${dueAt(shape)} <= ${AT}, true)`

/** Set besides where a job ends for good; other people's columns are not written. */
const endedAt = ({ isMillrace }: Shape, time = AT): string => (isMillrace ? `, completed_at = ${time}` : '')

/* ---- The reaper ------------------------------------------------------------------------------------------------ */

/** Marks our advisory locks among others' in the same database: the letters MILL. */
const LOCK_CLASS = 0x4d494c4c

/**
 * At most one pass over a table at a time (X183). The lock ends with the statement, so it works behind a pooler in
 * transaction mode, where a session's lock would stay with a connection that somebody else gets next.
 */
const singleton = (key: string): string =>
  `singleton as materialized (select pg_try_advisory_xact_lock(${LOCK_CLASS}, ${key}::int) as held)`

/** The last sign of life of a row that has no lease. */
function lastSign({ hasUpdatedAt, hasCreatedAt }: Shape): string {
  const others = [hasUpdatedAt ? 'job.updated_at' : null, hasCreatedAt ? 'job.created_at' : null]
  return `coalesce(${['job.last_heartbeat_at', ...others.filter((column) => column !== null)].join(', ')})`
}

/** E34 and E36 in what they share; a row without a lease counts as expired when it has been silent for a default one (X173). */
function expired(shape: Shape, lease: string): string {
  return `job.status = 'processing' and (job.lease_expires_at < ${AT} or (job.lease_expires_at is null
      and ${lastSign(shape)} < ${AT} - make_interval(secs => ${lease}::float8)))`
}

/** One pass: pick what nobody else holds, change it, write its event; all of it or nothing (X172, X181). */
function pass(shape: Shape, parts: { condition: string; change: string; event: string }): string {
  return `
with ${moment('$1')}, ${singleton('$2')},
picked as (
  select job.id, job.locked_by, job.stage
  from ${shape.name} as job
  where (select held from singleton) and ${expired(shape, '$4')} and ${parts.condition}
  order by job.lease_expires_at
  limit $3::int
  for update of job skip locked
),
reaped as (
  update ${shape.name} as job
  set locked_by = null, lease_expires_at = null, ${parts.change}
  from picked
  where job.id = picked.id
  returning job.id, picked.locked_by, picked.stage, job.attempt_count, job.next_earliest_run_at
),
event as (
  insert into ${shape.events} (job_id, data)
  select id, jsonb_build_object('type', '${parts.event}', 'table', $5::text,
    'details', jsonb_build_object('reason', 'lease_expired', 'locked_by', locked_by), 'at', ${ISO})
  from reaped
)
select singleton.held::text as held, reaped.id::text as id, reaped.locked_by::text as locked_by,
  reaped.stage::text as stage, reaped.attempt_count::text as attempt,
  ${epochMs('reaped.next_earliest_run_at')} as due_ms
from singleton left join reaped on true`
}

/** E34 E35. Parameters: now, lock key, limit, default lease in seconds, table, backoff base and maximum in ms. */
export const requeueExpired = (shape: Shape): string =>
  pass(shape, {
    condition: `job.attempt_count < job.max_attempts
    and (job.next_earliest_run_at is null or job.next_earliest_run_at <= ${AT})`,
    change: `status = 'queued', next_earliest_run_at = ${AT} + ${requeueDelay('$6', '$7')}`,
    event: 'reaper:requeued',
  })

/** E36 E37 X180. Parameters: now, lock key, limit, default lease in seconds, table. */
export const failExpired = (shape: Shape): string =>
  pass(shape, {
    condition: 'job.attempt_count >= job.max_attempts',
    change: `status = 'failed', fail_code = 'timeout', fail_reason = 'lease_expired'${endedAt(shape)}`,
    event: 'reaper:failed(timeout)',
  })

/**
 * A row in processing that carries no time at all would never expire: it is seen now, and so expires a default lease
 * later. Parameters: now, limit.
 */
export const adoptTimeless = (shape: Shape): string => `
with ${moment('$1')},
picked as (
  select job.id from ${shape.name} as job
  where job.status = 'processing' and job.lease_expires_at is null and ${lastSign(shape)} is null
  limit $2::int
  for update of job skip locked
)
update ${shape.name} as job set last_heartbeat_at = ${AT}
from picked where job.id = picked.id
returning job.id::text as id`

/* ---- Leases ---------------------------------------------------------------------------------------------------- */

const LEASED = `job.id::text as id, job.attempt_count::text as attempt, job.max_attempts::text as attempts_max,
  job.stage::text as stage, ${epochMs('job.lease_expires_at')} as expires_ms, ${epochMs('job.started_at')} as started_ms,
  job.expected_duration_ms::text as expected_ms`

/** X191, X174, X178. Parameters: id, now, worker, lease in seconds. */
export const claim = (shape: Shape): string => `
with ${moment('$2')}
update ${shape.name} as job
set status = 'processing', locked_by = $3, lease_expires_at = ${AT} + make_interval(secs => $4::float8),
  last_heartbeat_at = ${AT}, started_at = ${AT}, attempt_count = job.attempt_count + 1, next_earliest_run_at = null
where job.id = $1 and ${isDue(shape)}
returning ${LEASED}`

/** No owner, no effect: a late worker must not touch a job that has a new one, nor one whose lease has ended (X171, X185). */
const held = (worker: string, attempt: string): string =>
  `job.status = 'processing' and job.locked_by = ${worker} and job.lease_expires_at >= ${AT}
  and (${attempt}::int is null or job.attempt_count = ${attempt}::int)`

/** X179, the twin of deadlineMs. NULL where there is no deadline. */
const deadline = (stages: string, factors: string, ofTable: string): string =>
  `job.started_at + job.expected_duration_ms * interval '1 millisecond' * coalesce(
    (select sla.factor from unnest(${stages}::text[], ${factors}::float8[]) as sla(stage, factor)
     where sla.stage = regexp_replace(lower(job.stage::text), '[^a-z0-9]', '', 'g')), ${ofTable}::float8)`

/** E10. Parameters: id, now, worker, attempt or null, lease in seconds, stages, their factors, the table's factor. */
export const heartbeat = (shape: Shape): string => `
with ${moment('$2')}
update ${shape.name} as job
set lease_expires_at = ${AT} + make_interval(secs => $5::float8), last_heartbeat_at = ${AT}
where job.id = $1 and ${held('$3', '$4')} and coalesce(${deadline('$6', '$7', '$8')} >= ${AT}, true)
returning ${LEASED}`

/** Why a claim, heartbeat or finish was refused. Parameters: id, now. */
export const look = (shape: Shape): string => `
with ${moment('$2')}
select job.status::text as status, job.locked_by::text as locked_by, ${epochMs(dueAt(shape))} as due_ms,
  ${epochMs(AT)} as now_ms, ${LEASED}
from ${shape.name} as job where job.id = $1`

/** The event of what a worker reported, in the transaction of the row itself. */
const finished = (shape: Shape, table: string, worker: string, type: string, details: string): string => `
event as (
  insert into ${shape.events} (job_id, data)
  select id, jsonb_build_object('type', ${type}, 'table', ${table}::text,
    'details', jsonb_build_object(${details}'locked_by', ${worker}::text), 'at', ${ISO})
  from settled
)
select id::text as id, status::text as status, attempt_count::text as attempt, ${epochMs('next_earliest_run_at')} as due_ms
from settled`

const SETTLED = 'returning job.id, job.status, job.attempt_count, job.next_earliest_run_at'

/** E11, success. Parameters: id, now, worker, attempt or null, table. */
export const complete = (shape: Shape): string => `
with ${moment('$2')},
settled as (
  update ${shape.name} as job
  set status = 'completed', locked_by = null, lease_expires_at = null, fail_code = null, fail_reason = null${endedAt(shape)}
  where job.id = $1 and ${held('$3', '$4')}
  ${SETTLED}
),${finished(shape, '$5', '$3', `'worker:completed'`, '')}`

/**
 * E11, X192: queued again after a backoff while attempts are left, else failed.
 * Parameters: id, now, worker, attempt or null, table, code, reason, may be retried, backoff base and maximum in ms.
 */
export const fail = (shape: Shape): string => {
  const again = '($8::boolean and job.attempt_count < job.max_attempts)'
  const type = `case settled.status::text when 'queued' then 'worker:requeued' else 'worker:failed' end`
  return `
with ${moment('$2')},
settled as (
  update ${shape.name} as job
  set status = (case when ${again} then 'queued' else 'failed' end)::${shape.statusType},
    locked_by = null, lease_expires_at = null, fail_code = $6, fail_reason = $7,
    next_earliest_run_at = case when ${again} then ${AT} + ${requeueDelay('$9', '$10')} end${endedAt(shape, `case when ${again} then null else ${AT} end`)}
  where job.id = $1 and ${held('$3', '$4')}
  ${SETTLED}
),${finished(shape, '$5', '$3', type, `'reason', $7::text, 'code', $6::text, `)}`
}

/* ---- Dispatching ----------------------------------------------------------------------------------------------- */

/** Parameters: now, limit. */
export const listDue = (shape: Shape): string => `
with ${moment('$1')}
select job.id::text as id from ${shape.name} as job
where ${isDue(shape)}
order by ${dueAt(shape)} nulls first
limit $2::int`

/** X190. Parameter: now. A row that was never due before waits since it was created. */
export const queueAge = (shape: Shape): string => {
  const since = shape.hasCreatedAt ? `coalesce(${dueAt(shape)}, job.created_at)` : dueAt(shape)
  return `
with ${moment('$1')}
select count(*)::text as waiting, ${epochMs(`(${AT} - min(${since}))`)} as oldest_ms
from ${shape.name} as job
where ${isDue(shape)}`
}

/** Columns come quoted. The values are followed by `max_attempts` where the row does not bring its own (X176). */
export const insert = (name: string, columns: readonly string[]): string => `
insert into ${name} (${columns.join(', ')})
values (${columns.map((_, index) => `$${index + 1}`).join(', ')})
returning id::text as id`
