import type { Lost, Settlement } from '../../engine/outcome.ts'
import { KEEP_LIMIT_BY } from '../../engine/retention.ts'
import type { StoredOptions } from '../../job/job.ts'
import { type FinishedAs, givesUp, type KeepLimit, keepLimitsOf } from '../sql/keep-limits.ts'
import type { SqliteStore } from './core.ts'
import { removeLetter } from './dead-letters.ts'
import { IS_AWAITED } from './dependencies.ts'
import { findRow } from './inspector.ts'
import { removeFinished } from './retention.ts'
import { parse, toView } from './rows.ts'

/** Jobs of a type beyond the newest, newest first. Ended jobs share the state of dead letters but are not counted. */
export const FIND_BEYOND = `
SELECT rowid, id, completed_at, options, ${IS_AWAITED} AS awaited FROM job_queue INDEXED BY idx_job_queue_type
WHERE type = :type AND status = :status AND ended IS NULL ORDER BY rowid DESC LIMIT :max OFFSET :keep`

/** Jobs that just finished. Superseded ones are left out. */
export const FIND_FINISHED = `
SELECT rowid, id, completed_at, ${IS_AWAITED} AS awaited FROM job_queue
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = :status AND ended IS NULL`

interface FoundRow {
  readonly rowid: number
  readonly id: string
  readonly completed_at: string
  readonly options: string | null
  /** Whether an unfinished job comes after it. */
  readonly awaited: 0 | 1
}

const STATUS: Readonly<Record<FinishedAs, string>> = { completed: 'completed', dead: 'dead_letter' }

/** Removes what the applied outcomes no longer keep, in their transaction. The newest jobs are those that arrived last. */
export function applyKeepLimits(core: SqliteStore, settlements: readonly Settlement[], lost: readonly Lost[]): void {
  const applied = settlements.filter(({ lease }) => !lost.some((loss) => loss.lease === lease))
  const { unkept, limits } = keepLimitsOf(applied)
  for (const what of ['completed', 'dead'] as const) removeThese(core, what, unkept[what])
  for (const limit of limits) removeBeyond(core, limit)
}

function removeThese(core: SqliteStore, what: FinishedAs, ids: readonly string[]): void {
  if (ids.length === 0) return
  const found = core.connection.prepare(FIND_FINISHED).all({ ids: JSON.stringify(ids), status: STATUS[what] })
  remove(core, what, found as unknown[] as FoundRow[])
}

function removeBeyond(core: SqliteStore, limit: KeepLimit): void {
  const { what, type, keep, max } = limit
  const found = core.connection.prepare(FIND_BEYOND).all({ status: STATUS[what], type, keep, max })
  const rows = found as unknown[] as FoundRow[]
  remove(
    core,
    what,
    rows.filter(({ options }, index) => givesUp(limit, parse<StoredOptions | null>(options, null), index)),
  )
}

function remove(core: SqliteStore, what: FinishedAs, rows: readonly FoundRow[]): void {
  const { connection, removedViews } = core
  const free = rows.filter(({ awaited }) => awaited === 0)
  for (const { id } of free) {
    const row = removedViews.isExpected(id) ? findRow(core, id) : undefined
    if (row !== undefined) removedViews.tell(toView(row))
  }
  if (what === 'dead') for (const { id } of free) removeLetter(core, id, KEEP_LIMIT_BY)
  else
    removeFinished(
      connection,
      free.map(({ rowid, id, completed_at: completedAt }) => ({ rowid, id, completedAt })),
    )
}
