import type { Lost, Outcome, Settlement } from '../../engine/outcome.ts'
import { isBeyondKeepLimit, KEEP_LIMIT_BY } from '../../engine/retention.ts'
import type { StoredOptions } from '../../job/job.ts'
import type { SqliteCore } from './core.ts'
import { removeLetter } from './dead-letters.ts'
import { IS_AWAITED } from './dependencies.ts'
import { findRow } from './inspector.ts'
import { removeFinished } from './retention.ts'
import { parse, toView } from './rows.ts'

/** All but the newest of a type, the newest first. The ended ones have the same state as dead letters and are none. */
export const FIND_BEYOND = `
SELECT rowid, id, completed_at, options, ${IS_AWAITED} AS awaited FROM job_queue INDEXED BY idx_job_queue_type
WHERE type = :type AND status = :status AND ended IS NULL ORDER BY rowid DESC LIMIT :max OFFSET :keep`

/** Jobs that have just finished, but for those whose place a newer version of their latest key took. */
export const FIND_FINISHED = `
SELECT rowid, id, completed_at, ${IS_AWAITED} AS awaited FROM job_queue
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = :status AND ended IS NULL`

/** Older jobs of a type looked at per settle at most: the first time a type is bounded there may be a million. */
const OLDER_MAX = 100

type Keeping = Extract<Outcome, { kind: 'complete' | 'dead' }> & { readonly keep: number }

type Status = 'completed' | 'dead_letter'

interface Bound {
  readonly status: Status
  readonly type: string
  readonly keep: number
  readonly keepIsOwn: boolean
  /** How many the call itself has added, so that it leaves no more than it found. */
  readonly added: number
}

interface Found {
  readonly rowid: number
  readonly id: string
  readonly completed_at: string
  /** Whether a job that may still run comes after it. */
  readonly awaited: 0 | 1
}

export function hasKeepLimit(outcome: Outcome): outcome is Keeping {
  return (outcome.kind === 'complete' || outcome.kind === 'dead') && outcome.keep !== undefined
}

/**
 * Carries out the `keep` of outcomes, inside the transaction that applied them. The newest are those that arrived last.
 * Where one call settles several jobs of a type with numbers of one origin, the last number counts.
 */
export function applyKeepLimits(core: SqliteCore, settlements: readonly Settlement[], lost: readonly Lost[]): void {
  const bounds = new Map<string, Bound>()
  const gone: Record<Status, string[]> = { completed: [], dead_letter: [] }
  for (const { lease, outcome } of settlements) {
    if (!hasKeepLimit(outcome) || lost.some((loss) => loss.lease === lease)) continue
    const { type, id } = lease.job
    const { keep, keepIsOwn = false } = outcome
    const status = outcome.kind === 'complete' ? 'completed' : 'dead_letter'
    if (keep === 0) {
      gone[status].push(id)
      continue
    }
    const name = `${status} ${keepIsOwn} ${type}`
    bounds.set(name, { status, type, keep, keepIsOwn, added: (bounds.get(name)?.added ?? 0) + 1 })
  }
  for (const status of ['completed', 'dead_letter'] as const) removeThese(core, gone[status], status)
  for (const bound of bounds.values()) removeBeyond(core, bound)
}

function removeThese(core: SqliteCore, ids: readonly string[], status: Status): void {
  if (ids.length === 0) return
  const rows = core.connection.prepare(FIND_FINISHED).all({ ids: JSON.stringify(ids), status }) as unknown as Found[]
  remove(core, status, rows)
}

function removeBeyond(core: SqliteCore, { status, type, keep, keepIsOwn, added }: Bound): void {
  const max = added + OLDER_MAX
  const rows = core.connection.prepare(FIND_BEYOND).all({ status, type, keep, max }) as (Found & {
    options: string | null
  })[]
  const beyond = rows.filter(({ options }, index) => {
    const own = parse<StoredOptions | null>(options, null)
    return isBeyondKeepLimit(status === 'completed' ? own?.keepCompleted : own?.keepDead, keep + index, { keepIsOwn })
  })
  remove(core, status, beyond)
}

function remove(core: SqliteCore, status: Status, rows: readonly Found[]): void {
  const { connection, farewells } = core
  const free = rows.filter(({ awaited }) => awaited === 0)
  for (const { id } of free) {
    const row = farewells.isExpected(id) ? findRow(core, id) : undefined
    if (row !== undefined) farewells.tell(toView(row))
  }
  if (status === 'dead_letter') for (const { id } of free) removeLetter(core, id, KEEP_LIMIT_BY)
  else
    removeFinished(
      connection,
      free.map(({ rowid, id, completed_at: completedAt }) => ({ rowid, id, completedAt })),
    )
}
