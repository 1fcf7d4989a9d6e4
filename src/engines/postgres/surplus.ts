import type { Farewells } from '../../engine/farewells.ts'
import type { Outcome, Settlement } from '../../engine/outcome.ts'
import { SURPLUS_BY } from '../../engine/retention.ts'
import type { Queries } from './database.ts'
import { findRow } from './inspector.ts'
import { type Candidate, removeFinished, removeOldLetter } from './retention.ts'
import { FIND_SURPLUS } from './retention-statements.ts'
import { toView } from './rows.ts'

/** Jobs removed per type and settle at most: the first time an old type is bounded there may be a million. */
const REMOVED_MAX = 100

export function keepOf(outcome: Outcome): number | null {
  return outcome.kind === 'complete' || outcome.kind === 'dead' ? (outcome.keep ?? null) : null
}

interface Bound {
  readonly status: 'completed' | 'failed'
  readonly type: string
  readonly keep: number
}

/**
 * Carries out the `keep` of accepted outcomes, inside the transaction that applied them. The newest are those that
 * arrived last. Where one call settles several jobs of a type, the last one's bound counts.
 */
export async function removeSurplus(
  queries: Queries,
  accepted: readonly Settlement[],
  farewells: Farewells,
): Promise<void> {
  const bounds = new Map<string, Bound>()
  for (const { lease, outcome } of accepted) {
    const keep = keepOf(outcome)
    if (keep === null) continue
    const status = outcome.kind === 'complete' ? 'completed' : 'failed'
    bounds.set(`${status} ${lease.job.type}`, { status, type: lease.job.type, keep })
  }
  for (const bound of bounds.values()) await removeBeyond(queries, bound, farewells)
}

async function removeBeyond(queries: Queries, { status, type, keep }: Bound, farewells: Farewells): Promise<void> {
  const rows = await queries.rows<{ id: string; completed_ms: number }>(FIND_SURPLUS, type, status, keep, REMOVED_MAX)
  const surplus = rows.map(({ id, completed_ms: completedMs }): Candidate => ({ id, completedMs }))
  for (const { id } of surplus) {
    const row = farewells.isExpected(id) ? await findRow(queries, id) : null
    if (row !== null) farewells.tell(toView(row))
  }
  if (status === 'completed') await removeFinished(queries, surplus)
  else for (const letter of surplus) await removeOldLetter(queries, letter, SURPLUS_BY)
}
