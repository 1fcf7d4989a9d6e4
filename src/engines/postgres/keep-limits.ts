import type { Settlement } from '../../engine/outcome.ts'
import { KEEP_LIMIT_BY } from '../../engine/retention.ts'
import type { RemovedJobViews } from '../../engine/wait-until-finished.ts'
import type { StoredOptions } from '../../job/job.ts'
import { type FinishedAs, givesUp, type KeepLimit, keepLimitsOf } from '../sql/keep-limits.ts'
import type { Queries } from './database.ts'
import { isAwaited } from './dependencies.ts'
import { ms, NOW } from './fragments.ts'
import { findRow } from './inspector.ts'
import type { Names } from './names.ts'
import { removeFinished, removeOldLetter } from './retention.ts'
import { toView } from './rows.ts'

/** Jobs of a type beyond the newest, newest first. Only those that finished with a keep limit count. */
export const FIND_BEYOND = (names: Names): string => `
SELECT job.id::text AS id, ${ms('completed_at')} AS completed_ms, options, ${isAwaited(names)} AS awaited
FROM ${names.jobs} AS job
WHERE type = $2 AND status = $3 AND bounded AND status IN ('completed', 'failed') AND ended IS NULL AND ${NOW} IS NOT NULL
ORDER BY arrival DESC OFFSET $4 LIMIT $5`

/** Jobs that just finished. Superseded ones are left out. */
export const FIND_FINISHED = (names: Names): string => `
SELECT job.id::text AS id, ${ms('completed_at')} AS completed_ms, ${isAwaited(names)} AS awaited
FROM ${names.jobs} AS job
WHERE id::text = ANY ($2::text[]) AND status = $3 AND ended IS NULL AND ${NOW} IS NOT NULL`

interface FoundRow {
  readonly id: string
  readonly completed_ms: number
  readonly options: StoredOptions | null
  /** Whether an unfinished job comes after it. */
  readonly awaited: boolean
}

const STATUS: Readonly<Record<FinishedAs, string>> = { completed: 'completed', dead: 'failed' }

/** Removes what the applied outcomes no longer keep, in their transaction. The newest jobs are those that arrived last. */
export async function applyKeepLimits(
  queries: Queries,
  applied: readonly Settlement[],
  removedViews: RemovedJobViews,
): Promise<void> {
  const { unkept, limits } = keepLimitsOf(applied)
  for (const what of ['completed', 'dead'] as const) {
    if (unkept[what].length === 0) continue
    await remove(queries, what, await queries.rows<FoundRow>(FIND_FINISHED, unkept[what], STATUS[what]), removedViews)
  }
  for (const limit of limits) await removeBeyond(queries, limit, removedViews)
}

async function removeBeyond(queries: Queries, limit: KeepLimit, removedViews: RemovedJobViews): Promise<void> {
  const { what, type, keep, max } = limit
  const rows = await queries.rows<FoundRow>(FIND_BEYOND, type, STATUS[what], keep, max)
  const beyond = rows.filter(({ options }, index) => givesUp(limit, options, index))
  await remove(queries, what, beyond, removedViews)
}

async function remove(
  queries: Queries,
  what: FinishedAs,
  rows: readonly FoundRow[],
  removedViews: RemovedJobViews,
): Promise<void> {
  const free = rows.filter(({ awaited }) => !awaited).map(({ id, completed_ms: completedMs }) => ({ id, completedMs }))
  for (const { id } of free) {
    const row = removedViews.isExpected(id) ? await findRow(queries, id) : null
    if (row !== null) removedViews.tell(toView(row))
  }
  if (what === 'completed') await removeFinished(queries, free)
  else for (const letter of free) await removeOldLetter(queries, letter, KEEP_LIMIT_BY)
}
