import type { Lost, Outcome, Settlement } from '../../engine/outcome.ts'
import { SURPLUS_BY } from '../../engine/retention.ts'
import type { SqliteCore } from './core.ts'
import { removeLetter } from './dead-letters.ts'
import { findRow } from './inspector.ts'
import { removeFinished } from './retention.ts'
import { FIND_SURPLUS } from './retention-statements.ts'
import { toView } from './rows.ts'

/** Older jobs of a type removed per settle at most: the first time a type is bounded there may be a million. */
const OLDER_MAX = 100

type Keeping = Extract<Outcome, { kind: 'complete' | 'dead' }> & { readonly keep: number }

interface Bound {
  readonly status: 'completed' | 'dead_letter'
  readonly type: string
  readonly keep: number
  /** How many the call itself has added, so that it leaves no more than it found. */
  readonly added: number
}

export function isKeeping(outcome: Outcome): outcome is Keeping {
  return (outcome.kind === 'complete' || outcome.kind === 'dead') && outcome.keep !== undefined
}

/**
 * Carries out the `keep` of outcomes, inside the transaction that applied them. The newest are those that arrived last.
 * Where one call settles several jobs of a type, the last one's bound counts.
 */
export function removeSurplus(core: SqliteCore, settlements: readonly Settlement[], lost: readonly Lost[]): void {
  const bounds = new Map<string, Bound>()
  for (const { lease, outcome } of settlements) {
    if (!isKeeping(outcome) || lost.some((loss) => loss.lease === lease)) continue
    const { type } = lease.job
    const status = outcome.kind === 'complete' ? 'completed' : 'dead_letter'
    const name = `${status} ${type}`
    bounds.set(name, { status, type, keep: outcome.keep, added: (bounds.get(name)?.added ?? 0) + 1 })
  }
  for (const bound of bounds.values()) removeBeyond(core, bound)
}

function removeBeyond(core: SqliteCore, { status, type, keep, added }: Bound): void {
  const { connection, farewells } = core
  const rows = connection.prepare(FIND_SURPLUS).all({ status, type, keep, max: added + OLDER_MAX }) as {
    rowid: number
    id: string
    completed_at: string
  }[]
  for (const { id } of rows) {
    const row = farewells.isExpected(id) ? findRow(core, id) : undefined
    if (row !== undefined) farewells.tell(toView(row))
  }
  if (status === 'dead_letter') for (const { id } of rows) removeLetter(core, id, SURPLUS_BY)
  else
    removeFinished(
      connection,
      rows.map(({ rowid, id, completed_at: completedAt }) => ({ rowid, id, completedAt })),
    )
}
