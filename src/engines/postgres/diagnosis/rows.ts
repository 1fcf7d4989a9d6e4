/** Row versions that nobody needs any more: who keeps them, and whether they are cleared away. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, formatBytes, ok, plural, warning } from '../../../engine/findings.ts'
import type { Queries } from '../database.ts'
import { FIND_HOLDERS, LOOK_AT_ROWS, SEES_ALL } from './statements.ts'

export interface Holder {
  readonly kind: 'session' | 'prepared' | 'slot' | 'standby'
  readonly name: string
  readonly detail: string
  readonly age_ms: number | null
}

/** A transaction that is open longer than this is seen in the claims. */
const HELD_MS = 60_000

export async function lookAtHorizon(queries: Queries): Promise<readonly Finding[]> {
  const holders = await queries.rows<Holder>(FIND_HOLDERS)
  const [sight] = await queries.rows<{ all: boolean }>(SEES_ALL)
  return judgeHolders(holders, sight?.all === true)
}

export function judgeHolders(holders: readonly Holder[], seesAll: boolean, heldMs = HELD_MS): readonly Finding[] {
  const held = holders.filter(({ age_ms: ageMs }) => ageMs === null || ageMs >= heldMs)
  if (held.length > 0) return held.map(describe)
  const blind = `; sessions of other roles are hidden from this one (GRANT pg_read_all_stats shows them)`
  return [ok('horizon', `nobody keeps dead rows from being cleared away${seesAll ? '' : blind}`)]
}

function describe({ kind, name, detail, age_ms: ageMs }: Holder): Finding {
  const age = ageMs === null ? '' : ` for ${formatAge(ageMs)}`
  const cost = 'dead rows cannot be cleared away meanwhile, and claims get slower'
  switch (kind) {
    case 'session':
      return warning(
        'horizon',
        `session ${name} (${detail}) has had a transaction open${age}: ${cost}`,
        `Find what it does, and end it if it is forgotten: SELECT pg_terminate_backend(${name}); idle_in_transaction_session_timeout ends such sessions by itself.`,
      )
    case 'prepared':
      return warning(
        'horizon',
        `the prepared transaction '${name}' of ${detail} is open${age}: ${cost}`,
        `COMMIT PREPARED or ROLLBACK PREPARED '${name.replaceAll("'", "''")}';`,
      )
    case 'slot':
      return warning(
        'horizon',
        `the replication slot '${name}' (${detail}) keeps what its reader has not taken: WAL, and perhaps dead rows`,
        `Start its reader, or if it is gone: SELECT pg_drop_replication_slot('${name}');`,
      )
    case 'standby':
      return warning(
        'horizon',
        `the standby '${name}' runs a long query and holds rows back by hot_standby_feedback: ${cost}`,
        'End the query on the standby, or set hot_standby_feedback = off there.',
      )
    default:
      kind satisfies never
      return ok('horizon', '')
  }
}

export interface Table {
  readonly name: string
  readonly live: number | null
  readonly dead: number | null
  readonly vacuumed_ms: number | null
  readonly clock_ms: number
  readonly bytes: number
  readonly frozen_age: number
  readonly unvacuumed: boolean
}

/** Less than this is cleared away before anybody notices. */
const DEAD_MIN = 50_000
const DEAD_PART_MAX = 0.5
/** Half of the way to the point at which the server refuses writes. */
const FROZEN_AGE_MAX = 1_000_000_000

export async function lookAtRows(queries: Queries): Promise<readonly Finding[]> {
  return (await queries.rows<Table>(LOOK_AT_ROWS)).flatMap(judgeTable)
}

export function judgeTable(table: Table): readonly Finding[] {
  const { name, live, dead, vacuumed_ms: vacuumedMs, clock_ms: clockMs } = table
  const findings: Finding[] = []
  if (table.unvacuumed) {
    findings.push(
      failure(
        'vacuum',
        `autovacuum is switched off for ${name}: dead rows stay, and every claim gets slower`,
        `ALTER TABLE ${name} RESET (autovacuum_enabled);`,
      ),
    )
  }
  if (table.frozen_age > FROZEN_AGE_MAX) {
    findings.push(
      failure(
        'vacuum',
        `${name} was not frozen for ${table.frozen_age} transactions; at 2 billion the server refuses every write`,
        `End what holds the horizon, then run: VACUUM (FREEZE) ${name};`,
      ),
    )
  }
  const when = vacuumedMs === null ? 'never vacuumed yet' : `vacuumed ${formatAge(clockMs - vacuumedMs)} ago`
  const text = `${name}: about ${plural(live ?? 0, 'row')}, ${dead ?? 0} dead, ${formatBytes(table.bytes)}, ${when}`
  if ((dead ?? 0) > DEAD_MIN && (dead ?? 0) > (live ?? 0) * DEAD_PART_MAX) {
    findings.push(
      warning(
        'vacuum',
        text,
        `If the horizon is held, end that first; else run VACUUM ${name}; and raise autovacuum_vacuum_cost_limit.`,
      ),
    )
  } else findings.push(ok('vacuum', text))
  return findings
}
