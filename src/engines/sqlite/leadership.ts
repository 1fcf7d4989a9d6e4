import type { Leadership, Term } from '../../engine/leadership.ts'
import { EngineError } from '../../errors.ts'
import type { SqliteCore } from './core.ts'
import { FIND_LEADER, RESIGN, TAKE_OFFICE } from './schedule-statements.ts'

interface LeaderRow {
  readonly holder: string
  readonly number: number
  readonly until_ms: number
}

export function createLeadership(core: SqliteCore): Leadership {
  return {
    /** While another's term runs it only reads: keepers that wait never take the write lock. */
    async campaign(office, holder, leaseMs) {
      if (core.isBehind) await core.followClock()
      const before = await core.read('leader', () => {
        core.assertUsable()
        return findLeader(core, office)
      })
      if (before !== null && before.holder !== holder) return before
      return core.writeVolatile('campaign', () => takeOffice(core, office, holder, leaseMs))
    },
    resign: (office, holder) =>
      core.writeVolatile('resign', () => void core.connection.prepare(RESIGN).run({ office, holder })),
    leader: (office) => core.read('leader', () => findLeader(core, office)),
  }
}

function findLeader({ connection, clock }: SqliteCore, office: string): Term | null {
  const now = clock.nowMs()
  const row = connection.prepare(FIND_LEADER).get({ office, now }) as LeaderRow | undefined
  return row === undefined ? null : { holder: row.holder, number: row.number, leftMs: row.until_ms - now }
}

function takeOffice(core: SqliteCore, office: string, holder: string, leaseMs: number): Term {
  core.connection.prepare(TAKE_OFFICE).run({ office, holder, leaseMs, now: core.clock.nowMs() })
  const term = findLeader(core, office)
  if (term !== null) return term
  throw new EngineError('ERR_STORAGE_FAILED', `nobody holds the office '${office}' right after it was taken`)
}
