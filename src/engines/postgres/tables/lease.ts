import { toIso } from '../../../time/iso.ts'
import { deadlineMs } from './deadline.ts'
import type { SlaFactors } from './environment.ts'
import { refused } from './service-result.ts'

/** A row as it was found after a call that changed nothing. */
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

/** Who says to hold the lease; `attempt` where the caller knows which start is meant. */
export interface Holder {
  readonly workerId: string
  readonly attempt: number | null
}

type Refusal = ReturnType<typeof refused>

/** A lease has ended when its time is strictly past; at the very moment it still holds (E34, X185). */
export function isExpired(expiresAtMs: number, nowMs: number): boolean {
  return expiresAtMs < nowMs
}

/** X191: why nobody may take this job now. */
export function whyNotClaimable(table: string, id: string, row: FoundRow | null): Refusal {
  if (row === null) return refused('not_claimable', `no row of '${table}' has the id '${id}'`)
  const { status, dueAtMs, nowMs } = row
  if (status !== 'queued') return refused('not_claimable', `job ${id} of '${table}' is ${status}, not queued`)
  if (dueAtMs !== null && dueAtMs > nowMs) {
    return refused('not_claimable', `job ${id} of '${table}' is due at ${toIso(dueAtMs)}; claim it then`)
  }
  return refused('not_claimable', `job ${id} of '${table}' was changed at the same time; try again`)
}

/** Why a heartbeat or a finish had no effect. The worker should stop: somebody else has the job, or soon will. */
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
  if (row.lockedBy !== holder.workerId) return refused('lease_lost', `${what} has another worker; stop working on it`)
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
