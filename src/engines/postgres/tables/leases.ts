import type { TableAccess } from './access.ts'
import { numberOf, type Row, textOf } from './database.ts'
import { deadlineMs, factorOfTable } from './deadline.ts'
import { type FoundRow, type Holder, whyNotClaimable, whyNotHeld } from './lease.ts'
import { accepted, refused, type ServiceResult } from './service-result.ts'
import type { Shape } from './shape.ts'
import { claim, heartbeat, look } from './statements.ts'

/** A job that a worker holds. */
export interface LeasedJob {
  readonly id: string
  readonly table: string
  /** 1 for the first start. Give it to `heartbeatJob` and `finishJob`: a worker's earlier start is then refused too. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly stage: string | null
  readonly leaseExpiresAt: Date
  /** Heartbeats are refused from here on; null where the row has no expected duration, or its stage no factor. */
  readonly deadlineAt: Date | null
}

/** A century in seconds; a lease that long is a mistake, and its end would not be a date. */
const LEASE_SEC_MAX = 3_155_760_000

interface Call {
  readonly table: string
  readonly id: string
  readonly workerId: string
  readonly leaseSec: number
}

/** What is wrong with the arguments, or null. Callers from JavaScript give anything. */
function invalid({ id, workerId, leaseSec }: Call): ReturnType<typeof refused> | null {
  if (typeof id !== 'string' || id === '') return refused('invalid_argument', 'the id is empty; give the id of a row')
  if (typeof workerId !== 'string' || workerId === '') {
    return refused('invalid_argument', 'the worker id is empty; give one that no other worker has')
  }
  if (leaseSec > 0 && leaseSec <= LEASE_SEC_MAX) return null
  return refused('invalid_argument', `the lease is ${leaseSec} s; give a number above 0, at most ${LEASE_SEC_MAX}`)
}

/** E09: takes a queued job that is due, counts the start and sets the lease; by one worker however many try (X191). */
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

/** E10: a living worker's lease starts anew. Refused after its end, for another's job, and past the deadline (X179, X185). */
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

/** Says why a holder's call changed nothing. */
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
