import type { Subscription } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { expiredLeaseMs } from '../../engine/subscriptions.ts'
import { toIso } from '../../time/iso.ts'
import { type NextDue, newToken } from './claim.ts'
import type { Connection } from './database.ts'
import { recordEvent } from './history.ts'
import { type ExpiredRow, JOB_COLUMNS, toLease, toMs } from './rows.ts'

export const FIND_EXPIRED = `
SELECT ${JOB_COLUMNS}, lease_owner, started_at FROM job_queue INDEXED BY idx_job_queue_lease_expiry
WHERE status = 'in_progress' AND lease_until <= :now AND (:only IS NULL OR type IN (SELECT value FROM json_each(:only)))
ORDER BY lease_until LIMIT :max`

/** The start was counted when it was claimed. The reaper's lease counts nothing. */
export const LEASE_EXPIRED = `
UPDATE job_queue SET lease_owner = :worker, lease_until = :until, lease_token = :token, updated_at = :now
WHERE rowid IN (SELECT value FROM json_each(:rows))`

export const NEXT_EXPIRY = `
SELECT min(lease_until) AS due FROM job_queue INDEXED BY idx_job_queue_lease_expiry WHERE status = 'in_progress'`

export function nextExpiry(connection: Connection, nowMs: number): NextDue {
  const { due } = connection.prepare(NEXT_EXPIRY).get() as { due: string | null }
  const nextMs = toMs(due)
  return { ready: nextMs !== null && nextMs <= nowMs, nextMs }
}

/** Hands expired jobs to the reaper under a fresh token. Inside a write transaction. */
export function claimExpired(
  connection: Connection,
  subscription: Subscription,
  max: number,
  nowMs: number,
): readonly Lease[] {
  const { types, worker } = subscription
  const only = types === 'every' ? null : JSON.stringify(types.map((type) => type.type))
  const rows = connection.prepare(FIND_EXPIRED).all({ now: toIso(nowMs), max, only }) as ExpiredRow[]
  if (rows.length === 0) return []
  const leaseMs = expiredLeaseMs(subscription)
  const token = newToken()
  connection.prepare(LEASE_EXPIRED).run({
    worker,
    token,
    until: toIso(nowMs + leaseMs),
    now: toIso(nowMs),
    rows: JSON.stringify(rows.map((row) => row.rowid)),
  })
  for (const row of rows) {
    const detail = { startedAtMs: toMs(row.started_at) }
    recordEvent(
      connection,
      { id: row.id, name: 'expired', attempt: row.attempts, worker: row.lease_owner, detail },
      nowMs,
    )
  }
  return rows.map((row) => toLease(row, row.attempts, token, nowMs + leaseMs))
}
