import type { SubscribedType } from '../../engine/engine.ts'
import type { Connection } from './database.ts'
import type { Lane } from './lanes.ts'
import type { JobRow } from './rows.ts'

export const COUNT_STARTS = `
SELECT coalesce(sum(starts), 0) AS starts, min(at_ms) AS oldest_ms FROM job_starts WHERE type = :type AND at_ms > :sinceMs`

/** Starts recorded by a claim count from now. */
export const MOVE_STARTS = `UPDATE job_starts SET at_ms = :nowMs WHERE type = :type AND at_ms >= :sinceMs AND at_ms < :nowMs`

export const FORGET_STARTS = `DELETE FROM job_starts WHERE type = :type AND at_ms <= :sinceMs`

export const RECORD_STARTS = `INSERT INTO job_starts (type, at_ms, starts) VALUES (:type, :nowMs, :starts)`

/** How many starts the limit allows now, and when it allows the next one; null while it allows one now. */
export function startsLeft(
  connection: Connection,
  type: string,
  { max, perMs }: NonNullable<SubscribedType['limit']>,
  nowMs: number,
): { readonly left: number; readonly freeAtMs: number | null } {
  const used = connection.prepare(COUNT_STARTS).get({ type, sinceMs: nowMs - perMs }) as {
    starts: number
    oldest_ms: number | null
  }
  const left = Math.max(0, max - used.starts)
  return { left, freeAtMs: left > 0 || used.oldest_ms === null ? null : used.oldest_ms + perMs }
}

export function recordStarts(
  connection: Connection,
  lanes: readonly Lane[],
  rows: readonly JobRow[],
  nowMs: number,
): void {
  for (const { type } of lanes) {
    if (type.limit === undefined) continue
    const starts = rows.filter((row) => row.type === type.type).length
    if (starts === 0) continue
    connection.prepare(FORGET_STARTS).run({ type: type.type, sinceMs: nowMs - type.limit.perMs })
    connection.prepare(RECORD_STARTS).run({ type: type.type, nowMs, starts })
  }
}

/**
 * A claim records its starts before it commits, and its handlers start after that. The window of a rate limit counts from
 * the starts, so those recorded since `sinceMs` are moved to now.
 */
export function moveStarts(
  connection: Connection,
  types: readonly SubscribedType[],
  { sinceMs, nowMs }: { readonly sinceMs: number; readonly nowMs: number },
): void {
  for (const { type, limit } of types) {
    if (limit !== undefined) connection.prepare(MOVE_STARTS).run({ type, sinceMs, nowMs })
  }
}
