import type { DeadLetterFilter, LetterCauses } from '../../engine/dead-letters.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import { type CauseRow, toLetterCauses } from '../sql/dead-letters.ts'
import type { Connection } from './database.ts'

export const DEAD = `status = 'dead_letter' AND ended IS NULL`

/** The columns of the letters of a page. One text for each set of filters, so that each uses the index. */
export function listDead(columns: string, filter: DeadLetterFilter): string {
  const conditions = [
    DEAD,
    filter.type !== undefined && 'type = :type',
    filter.sinceMs !== undefined && 'completed_at >= :since',
    filter.beforeMs !== undefined && 'completed_at < :before',
    filter.after !== undefined && '(completed_at, id) < (:afterAt, :afterId)',
  ]
  return `SELECT ${columns} FROM job_queue INDEXED BY idx_job_queue_dead
WHERE ${conditions.filter(Boolean).join(' AND ')} ORDER BY completed_at DESC, id DESC LIMIT :limit`
}

export function boundsOf({ type, sinceMs, beforeMs, limit, after }: DeadLetterFilter): Record<string, string | number> {
  return {
    // SQLite takes -1 as no limit.
    limit: Number.isFinite(limit) ? limit : -1,
    ...(type !== undefined && { type }),
    ...(sinceMs !== undefined && { since: toIso(sinceMs) }),
    ...(beforeMs !== undefined && { before: toIso(beforeMs) }),
    ...(after !== undefined && { afterAt: toIso(after.completedAtMs), afterId: after.id }),
  }
}

const LETTER = `type, error, error_record, completed_at, coalesce(completed_at, updated_at) || '|' || id AS died`

/**
 * The letters of a page by their errors. Records are read once for all letters that have the same. Another program may have
 * written only the text, or what is not JSON.
 */
export function causesOf(filter: DeadLetterFilter): string {
  return `SELECT type, iif(record IS NULL, 'Error', coalesce(record ->> '$.name', '')) AS name, record ->> '$.code' AS code,
  iif(record IS NULL, error, record ->> '$.message') AS message, count, oldest, newest, last
FROM (
  SELECT type, error, CASE WHEN error IS NOT NULL AND json_valid(error_record) THEN error_record END AS record,
    count(*) AS count, min(died) AS oldest, max(died) AS newest, min(died) FILTER (WHERE completed_at IS NOT NULL) AS last
  FROM (${listDead(LETTER, filter)}) GROUP BY type, error, error_record)`
}

/** Inside a read. */
export function countCauses(connection: Connection, filter: DeadLetterFilter): LetterCauses {
  const rows = connection.prepare(causesOf(filter)).all(boundsOf(filter)) as unknown[] as CauseRow[]
  return toLetterCauses(rows, filter.limit, fromIso)
}
