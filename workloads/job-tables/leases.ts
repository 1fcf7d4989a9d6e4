import { toIso } from '../../src/time/iso.ts'
import type { TableAccess } from './access.ts'
import { accepted, numberOf, type Row, refused, type ServiceResult, textOf } from './database.ts'
import { deadlineMs, factorOfTable, type SlaFactors } from './settings.ts'
import type { Shape } from './shape.ts'
import { AT, dueAt, epochMs, held, isDue, moment } from './sql.ts'

/** A job that a worker holds. */
export interface LeasedJob {
  readonly id: string
  readonly table: string
  /** 1 for the first start. Pass it to `heartbeatJob` and `finishJob`, so that a worker's earlier start is refused too. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly stage: string | null
  readonly leaseExpiresAt: Date
  /** Heartbeats are refused after it. Null if the row has no expected duration or its stage no factor. */
  readonly deadlineAt: Date | null
}

/** A century. Beyond it, the end of the lease would not be a valid date. */
const LEASE_SEC_MAX = 3_155_760_000

interface Call {
  readonly table: string
  readonly id: string
  readonly workerId: string
  readonly leaseSec: number
}

/** Null for valid arguments. Callers without types may pass anything. */
function invalid({ id, workerId, leaseSec }: Call): ReturnType<typeof refused> | null {
  if (typeof id !== 'string' || id === '') return refused('invalid_argument', 'the id is empty; give the id of a row')
  if (typeof workerId !== 'string' || workerId === '') {
    return refused('invalid_argument', 'the worker id is empty; give one that no other worker has')
  }
  if (leaseSec > 0 && leaseSec <= LEASE_SEC_MAX) return null
  return refused('invalid_argument', `the lease is ${leaseSec} s; give a number above 0, at most ${LEASE_SEC_MAX}`)
}

/** Claims a due job, counts the start and sets the lease. Of several workers that try, one succeeds. */
export async function claimJob(access: TableAccess, call: Call): Promise<ServiceResult<LeasedJob>> {
  const problem = invalid(call)
  if (problem !== null) return problem
  const { table, id, workerId, leaseSec } = call
  return access.answer(table, 'claiming', async (shape) => {
    const [row] = await access.rows(claim(shape), [id, access.now(), workerId, leaseSec])
    if (row !== undefined) return accepted(leasedJob(access, table, row))
    return whyNotClaimable(table, id, await find(access, shape, table, id))
  })
}

/** Renews the lease. Refused after its end, for another worker's job, and past the deadline. */
export async function heartbeatJob(
  access: TableAccess,
  call: Call & { readonly attempt: number | null },
): Promise<ServiceResult<LeasedJob>> {
  const problem = invalid(call)
  if (problem !== null) return problem
  const { table, id, workerId, attempt, leaseSec } = call
  const { slaFactors } = access.settings
  return access.answer(table, 'renewing the lease', async (shape) => {
    const [row] = await access.rows(heartbeat(shape), [
      id,
      access.now(),
      workerId,
      attempt,
      leaseSec,
      Object.keys(slaFactors),
      Object.values(slaFactors),
      factorOfTable(table, slaFactors),
    ])
    if (row !== undefined) return accepted(leasedJob(access, table, row))
    return refuseHolder(access, shape, { table, id, workerId, attempt })
  })
}

/** Why a holder's call changed nothing. */
export async function refuseHolder(
  access: TableAccess,
  shape: Shape,
  { table, id, workerId, attempt }: Holder & { readonly table: string; readonly id: string },
): Promise<ReturnType<typeof refused>> {
  const row = await find(access, shape, table, id)
  return whyNotHeld(table, id, row, { workerId, attempt }, access.settings.slaFactors)
}

async function find(access: TableAccess, shape: Shape, table: string, id: string): Promise<FoundRow | null> {
  const [row] = await access.rows(look(shape), [id, access.now()])
  if (row === undefined) return null
  return {
    ...started(table, row),
    id,
    status: textOf(row, 'status') ?? 'NULL',
    lockedBy: textOf(row, 'locked_by'),
    attempt: numberOf(row, 'attempt') ?? 0,
    expiresAtMs: numberOf(row, 'expires_ms'),
    dueAtMs: numberOf(row, 'due_ms'),
    nowMs: numberOf(row, 'now_ms') ?? 0,
  }
}

function started(table: string, row: Row) {
  return {
    table,
    stage: textOf(row, 'stage'),
    startedAtMs: numberOf(row, 'started_ms'),
    expectedDurationMs: numberOf(row, 'expected_ms'),
  }
}

function leasedJob(access: TableAccess, table: string, row: Row): LeasedJob {
  const overAtMs = deadlineMs(started(table, row), access.settings.slaFactors)
  return {
    id: textOf(row, 'id') ?? '',
    table,
    attempt: numberOf(row, 'attempt') ?? 0,
    maxAttempts: numberOf(row, 'attempts_max') ?? 0,
    stage: textOf(row, 'stage'),
    leaseExpiresAt: new Date(numberOf(row, 'expires_ms') ?? 0),
    deadlineAt: overAtMs === null ? null : new Date(overAtMs),
  }
}

/** A row as found after a call that changed nothing. */
export interface FoundRow {
  readonly table: string
  readonly id: string
  readonly status: string
  readonly lockedBy: string | null
  readonly attempt: number
  readonly stage: string | null
  readonly expectedDurationMs: number | null
  readonly startedAtMs: number | null
  readonly expiresAtMs: number | null
  readonly dueAtMs: number | null
  readonly nowMs: number
}

/** The caller's claim to the lease; null for what the caller does not say. */
export interface Holder {
  readonly workerId: string | null
  readonly attempt: number | null
}

type Refusal = ReturnType<typeof refused>

/** At the very moment of its end, a lease still holds. */
export function isExpired(expiresAtMs: number, nowMs: number): boolean {
  return expiresAtMs < nowMs
}

export function whyNotClaimable(table: string, id: string, row: FoundRow | null): Refusal {
  if (row === null) return refused('not_claimable', `no row of '${table}' has the id '${id}'`)
  const { status, dueAtMs, nowMs } = row
  if (status !== 'queued') return refused('not_claimable', `job ${id} of '${table}' is ${status}, not queued`)
  if (dueAtMs !== null && dueAtMs > nowMs) {
    return refused('not_claimable', `job ${id} of '${table}' is due at ${toIso(dueAtMs)}; claim it then`)
  }
  return refused('not_claimable', `job ${id} of '${table}' was changed at the same time; try again`)
}

/** Why a heartbeat or finish had no effect. The worker should stop: another worker has the job, or soon will. */
export function whyNotHeld(
  table: string,
  id: string,
  row: FoundRow | null,
  holder: Holder,
  factors: SlaFactors,
): Refusal {
  if (row === null) return refused('lease_lost', `no row of '${table}' has the id '${id}'; stop working on it`)
  const what = `job ${id} of '${table}'`
  if (row.status !== 'processing') return refused('lease_lost', `${what} is ${row.status}; stop working on it`)
  if (holder.workerId !== null && row.lockedBy !== holder.workerId)
    return refused('lease_lost', `${what} has another worker; stop working on it`)
  if (holder.attempt !== null && holder.attempt !== row.attempt) {
    return refused('lease_lost', `${what} is at start ${row.attempt}, not ${holder.attempt}; stop working on it`)
  }
  if (row.expiresAtMs === null || isExpired(row.expiresAtMs, row.nowMs)) {
    return refused('lease_expired', `the lease of ${what} has ended; stop working on it, the reaper will return it`)
  }
  const overAtMs = deadlineMs(row, factors)
  if (overAtMs !== null && overAtMs < row.nowMs) {
    return refused('deadline_passed', `${what} has run past its deadline of ${toIso(overAtMs)}; stop working on it`)
  }
  return refused('lease_lost', `${what} was changed at the same time; try again`)
}

const LEASED = `job.id::text as id, job.attempt_count::text as attempt, job.max_attempts::text as attempts_max,
  job.stage::text as stage, ${epochMs('job.lease_expires_at')} as expires_ms, ${epochMs('job.started_at')} as started_ms,
  job.expected_duration_ms::text as expected_ms`

/** Parameters: id, now, worker, lease in seconds. */
const claim = (shape: Shape): string => `
with ${moment('$2')}
update ${shape.name} as job
set status = 'processing', locked_by = $3, lease_expires_at = ${AT} + make_interval(secs => $4::float8),
  last_heartbeat_at = ${AT}, started_at = ${AT}, attempt_count = job.attempt_count + 1, next_earliest_run_at = null
where job.id = $1 and ${isDue(shape)}
returning ${LEASED}`

/** `deadlineMs` in SQL. NULL without a deadline. */
const deadline = (stages: string, factors: string, ofTable: string): string =>
  `job.started_at + job.expected_duration_ms * interval '1 millisecond' * coalesce(
    (select sla.factor from unnest(${stages}::text[], ${factors}::float8[]) as sla(stage, factor)
     where sla.stage = regexp_replace(lower(job.stage::text), '[^a-z0-9]', '', 'g')), ${ofTable}::float8)`

/** Parameters: id, now, worker, attempt or null, lease in seconds, stages, their factors, the table's factor. */
const heartbeat = (shape: Shape): string => `
with ${moment('$2')}
update ${shape.name} as job
set lease_expires_at = ${AT} + make_interval(secs => $5::float8), last_heartbeat_at = ${AT}
where job.id = $1 and ${held('$3', '$4')} and coalesce(${deadline('$6', '$7', '$8')} >= ${AT}, true)
returning ${LEASED}`

/** Reads the row after a refused call. Parameters: id, now. */
const look = (shape: Shape): string => `
with ${moment('$2')}
select job.status::text as status, job.locked_by::text as locked_by, ${epochMs(dueAt(shape))} as due_ms,
  ${epochMs(AT)} as now_ms, ${LEASED}
from ${shape.name} as job where job.id = $1`
