import type { Leadership, Term } from '../../engine/leadership.ts'
import { EngineError } from '../../errors.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { FIND_LEADER, RESIGN, TAKE_OFFICE } from './schedule-statements.ts'

interface LeaderRow {
  readonly holder: string
  readonly number: number
  readonly left_ms: number
}

/** A holder may resign between the two looks, but hardly so often. */
const TRIES = 5

export function createLeadership(core: PostgresCore): Leadership {
  return {
    campaign: (office, holder, leaseMs) =>
      core.call('campaign', async (database) => {
        // Every keeper comes by here every few seconds, so that a step of the server's clock is noticed soon.
        core.schema.assertKnown()
        await core.steps.follow()
        for (let tries = 0; tries < TRIES; tries += 1) {
          // While another's term runs it only reads, so that keepers that wait leave no dead rows behind.
          const before = await findLeader(database, office)
          if (before !== null && before.holder !== holder) return before
          const [taken] = await database.rows<LeaderRow>(TAKE_OFFICE, office, holder, leaseMs)
          if (taken !== undefined) return toTerm(taken)
        }
        throw new EngineError('ERR_STORAGE_BUSY', `the office '${office}' changes hands too fast; try again`)
      }),
    resign: (office, holder) =>
      core.call('resign', async (database) => void (await database.rows(RESIGN, office, holder))),
    leader: (office) => core.call('leader', (database) => findLeader(database, office)),
  }
}

async function findLeader(queries: Queries, office: string): Promise<Term | null> {
  const [row] = await queries.rows<LeaderRow>(FIND_LEADER, office)
  return row === undefined ? null : toTerm(row)
}

function toTerm(row: LeaderRow): Term {
  return { holder: row.holder, number: row.number, leftMs: row.left_ms }
}
