import type { Lease, Lost } from '../../engine/outcome.ts'
import type { Ended } from '../../job/states.ts'
import { toIso } from '../../time/iso.ts'
import { lostReason } from '../sql/outcomes.ts'
import type { Connection } from './database.ts'
import { fromLeaseToken, HELD } from './rows.ts'

export const REPORT = `UPDATE job_queue SET progress = :progress, updated_at = :now WHERE ${HELD}`

/** Rows are [rowid, token]. */
export const RENEW_MANY = `
UPDATE job_queue SET lease_until = :until, updated_at = :now FROM json_each(:held) AS held
WHERE job_queue.rowid = held.value ->> 0 AND lease_token = held.value ->> 1
  AND status = 'in_progress' AND lease_until > :now`

export const RENEW_ONE = `UPDATE job_queue SET lease_until = :until, updated_at = :now WHERE ${HELD}`

/** Which of the held leases, [id, token], are gone. */
export const FIND_LOST = `
SELECT held.value ->> 0 AS id, held.value ->> 1 AS token FROM json_each(:held) AS held
LEFT JOIN job_queue ON job_queue.id = held.value ->> 0
WHERE job_queue.lease_token IS NOT held.value ->> 1`

export const WHY_LOST = `SELECT ended FROM job_queue WHERE id = :id`

export interface Holder {
  readonly connection: Connection
  readonly worker: string
  readonly nowMs: number
}

export function change(
  holder: Holder,
  statement: string,
  lease: Lease,
  values: Record<string, string | number | null>,
): boolean {
  const fence = { id: lease.job.id, token: fromLeaseToken(lease.token).token, now: toIso(holder.nowMs) }
  return Number(holder.connection.prepare(statement).run({ ...fence, ...values }).changes) === 1
}

/** Extends all held leases in one statement. Only if some were not extended are they looked up one by one. */
export function renewLeases(holder: Holder, leases: readonly Lease[], leaseMs: number): readonly Lost[] {
  const { connection, nowMs } = holder
  const until = toIso(nowMs + leaseMs)
  const fences = leases.map((lease) => fromLeaseToken(lease.token))
  const held = JSON.stringify(fences.map((fence) => [fence.rowid, fence.token]))
  const { changes } = connection.prepare(RENEW_MANY).run({ held, until, now: toIso(nowMs) })
  if (Number(changes) === leases.length) return []
  return leases
    .filter((lease) => !change(holder, RENEW_ONE, lease, { until }))
    .map((lease) => toLost(connection, lease))
}

export function reportProgress(holder: Holder, lease: Lease, progress: string): boolean {
  return change(holder, REPORT, lease, { progress })
}

export function toLost(connection: Connection, lease: Lease): Lost {
  const row = connection.prepare(WHY_LOST).get({ id: lease.job.id }) as { ended: Ended | null } | undefined
  return { lease, reason: lostReason(row?.ended ?? null) }
}
