import type { Shape } from './shape.ts'
import { AT, endedAt, epochMs, ISO, moment, requeueDelay } from './sql.ts'

/** The letters MILL: tells our advisory locks from others in the same database. */
const LOCK_CLASS = 0x4d494c4c

/**
 * One pass over a table at a time. The lock ends with the statement, so it works behind a pooler in transaction mode; a
 * session's lock would stay with the connection.
 */
const singleton = (key: string): string =>
  `singleton as materialized (select pg_try_advisory_xact_lock(${LOCK_CLASS}, ${key}::int) as held)`

/** The last sign of life of a row without a lease. */
function lastSign({ hasUpdatedAt, hasCreatedAt }: Shape): string {
  const others = [hasUpdatedAt ? 'job.updated_at' : null, hasCreatedAt ? 'job.created_at' : null]
  return `coalesce(${['job.last_heartbeat_at', ...others.filter((column) => column !== null)].join(', ')})`
}

/** A row without a lease counts as expired after a default lease without a sign of life. */
export function expired(shape: Shape, lease: string): string {
  return `job.status = 'processing' and (job.lease_expires_at < ${AT} or (job.lease_expires_at is null
      and ${lastSign(shape)} < ${AT} - make_interval(secs => ${lease}::float8)))`
}

/** When the lease of a processing row ended or will end, in the sense of `expired`. NULL without any sign of life. */
export function endOfLease(shape: Shape, lease: string): string {
  return `coalesce(job.lease_expires_at, ${lastSign(shape)} + make_interval(secs => ${lease}::float8))`
}

/** One pass in one transaction: pick unlocked rows, change them and write their events. */
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

/** Parameters: now, lock key, limit, default lease in seconds, table, backoff base and maximum in ms. */
export const requeueExpired = (shape: Shape): string =>
  pass(shape, {
    condition: `job.attempt_count < job.max_attempts
    and (job.next_earliest_run_at is null or job.next_earliest_run_at <= ${AT})`,
    change: `status = 'queued', next_earliest_run_at = ${AT} + ${requeueDelay('$6', '$7')}`,
    event: 'reaper:requeued',
  })

/** Parameters: now, lock key, limit, default lease in seconds, table. */
export const failExpired = (shape: Shape): string =>
  pass(shape, {
    condition: 'job.attempt_count >= job.max_attempts',
    change: `status = 'failed', fail_code = 'timeout', fail_reason = 'lease_expired'${endedAt(shape)}`,
    event: 'reaper:failed(timeout)',
  })

/**
 * A processing row without any timestamp would never expire. It gets a heartbeat now, and expires a default lease later.
 * Parameters: now, limit.
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

/** Parameter: limit. */
export const runningStages = (shape: Shape): string => `
select distinct job.stage::text as stage from ${shape.name} as job where job.status = 'processing' limit $1::int`
