import type { Farewells } from '../../engine/farewells.ts'
import type { Outcome, Settlement } from '../../engine/outcome.ts'
import { isBeyondKeepLimit, KEEP_LIMIT_BY } from '../../engine/retention.ts'
import type { StoredOptions } from '../../job/job.ts'
import type { Queries } from './database.ts'
import { isAwaited } from './dependencies.ts'
import { ms, NOW } from './fragments.ts'
import { findRow } from './inspector.ts'
import type { Names } from './names.ts'
import { removeFinished, removeOldLetter } from './retention.ts'
import { toView } from './rows.ts'

/** All but the newest of a type, of those that finished with a bound; the newest first. */
export const FIND_BEYOND = (names: Names): string => `
SELECT job.id::text AS id, ${ms('completed_at')} AS completed_ms, options, ${isAwaited(names)} AS awaited
FROM ${names.jobs} AS job
WHERE type = $2 AND status = $3 AND bounded AND status IN ('completed', 'failed') AND ended IS NULL AND ${NOW} IS NOT NULL
ORDER BY arrival DESC OFFSET $4 LIMIT $5`

/** Jobs that have just finished, but for those whose place a newer version of their latest key took. */
export const FIND_FINISHED = (names: Names): string => `
SELECT job.id::text AS id, ${ms('completed_at')} AS completed_ms, ${isAwaited(names)} AS awaited
FROM ${names.jobs} AS job
WHERE id::text = ANY ($2::text[]) AND status = $3 AND ended IS NULL AND ${NOW} IS NOT NULL`

/** Older jobs of a type looked at per settle at most: the first time an old type is bounded there may be a million. */
const OLDER_MAX = 100

type Status = 'completed' | 'failed'

interface Bound {
  readonly status: Status
  readonly type: string
  readonly keep: number
  readonly keepIsOwn: boolean
  /** How many the call itself has added, so that it leaves no more than it found. */
  readonly added: number
}

interface Found {
  readonly id: string
  readonly completed_ms: number
  /** Whether a job that may still run comes after it. */
  readonly awaited: boolean
}

export function hasKeepLimit(outcome: Outcome): boolean {
  return (outcome.kind === 'complete' || outcome.kind === 'dead') && outcome.keep !== undefined
}

/**
 * Carries out the `keep` of accepted outcomes, inside the transaction that applied them. The newest are those that
 * arrived last. Where one call settles several jobs of a type with numbers of one origin, the last number counts.
 */
export async function applyKeepLimits(
  queries: Queries,
  accepted: readonly Settlement[],
  farewells: Farewells,
): Promise<void> {
  const bounds = new Map<string, Bound>()
  const gone: Record<Status, string[]> = { completed: [], failed: [] }
  for (const { lease, outcome } of accepted) {
    if ((outcome.kind !== 'complete' && outcome.kind !== 'dead') || outcome.keep === undefined) continue
    const { type, id } = lease.job
    const { keep, keepIsOwn = false } = outcome
    const status = outcome.kind === 'complete' ? 'completed' : 'failed'
    if (keep === 0) {
      gone[status].push(id)
      continue
    }
    const name = `${status} ${keepIsOwn} ${type}`
    bounds.set(name, { status, type, keep, keepIsOwn, added: (bounds.get(name)?.added ?? 0) + 1 })
  }
  for (const status of ['completed', 'failed'] as const) {
    if (gone[status].length === 0) continue
    await remove(queries, status, await queries.rows<Found>(FIND_FINISHED, gone[status], status), farewells)
  }
  for (const bound of bounds.values()) await removeBeyond(queries, bound, farewells)
}

async function removeBeyond(queries: Queries, bound: Bound, farewells: Farewells): Promise<void> {
  const { status, type, keep, keepIsOwn, added } = bound
  const rows = await queries.rows<Found & { options: StoredOptions | null }>(
    FIND_BEYOND,
    type,
    status,
    keep,
    added + OLDER_MAX,
  )
  const beyond = rows.filter(({ options }, index) =>
    isBeyondKeepLimit(status === 'completed' ? options?.keepCompleted : options?.keepDead, keep + index, { keepIsOwn }),
  )
  await remove(queries, status, beyond, farewells)
}

async function remove(queries: Queries, status: Status, rows: readonly Found[], farewells: Farewells): Promise<void> {
  const free = rows.filter(({ awaited }) => !awaited).map(({ id, completed_ms: completedMs }) => ({ id, completedMs }))
  for (const { id } of free) {
    const row = farewells.isExpected(id) ? await findRow(queries, id) : null
    if (row !== null) farewells.tell(toView(row))
  }
  if (status === 'completed') await removeFinished(queries, free)
  else for (const letter of free) await removeOldLetter(queries, letter, KEEP_LIMIT_BY)
}
