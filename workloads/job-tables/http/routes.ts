import type { Mill } from '../../../src/client/mill.ts'
import { toEngineError } from '../../../src/engines/postgres/faults.ts'
import { audited } from '../../../src/http/handlers/audited.ts'
import { type Route, route } from '../../../src/http/index.ts'
import type { Log } from '../../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { silentLog } from '../../../src/observe/log.ts'
import { ThrottledQuery } from '../../../src/observe/sampling/throttled-query.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { type AccessOptions, TableAccess } from '../access.ts'
import { actOnRow, type RowAct } from '../acts.ts'
import type { Database } from '../database.ts'
import { isBehind, judgeReaper, judgeTable, recoveryMsOf } from '../doctor.ts'
import { COUNT_MAX, listStuck, readReaperFacts, readTableFacts } from '../facts.ts'
import { TABLE_ROUTES } from './contract.ts'

export interface TableRoutesOptions extends AccessOptions<string> {
  readonly clock?: Clock
  readonly log?: Log
}

const OPTION_NAMES: OptionNames<TableRoutesOptions> = {
  tables: true,
  schema: true,
  settings: true,
  nowMs: true,
  clock: true,
  log: true,
}

const STUCK_MAX = 20
const RECENT_MAX = 30

/**
 * Routes for `createAdmin`, with the dashboard's page of job tables. Acts are in `job_events` and in the mill's audit.
 *
 * @example
 * const admin = createAdmin(mill, { routes: tableRoutes(mill, pool, { tables: ['jobs'] }), pages: ['tables'] })
 */
export function tableRoutes(
  mill: Mill,
  database: Database,
  options: TableRoutesOptions = {},
): Readonly<Record<keyof typeof TABLE_ROUTES, Route>> {
  refuseUnknown(options, OPTION_NAMES, 'tableRoutes')
  const { clock = systemClock, log = silentLog, ...place } = options
  const access = new TableAccess(database, place)
  const newView = () => new ThrottledQuery(() => viewOf(access), { clock })
  let view = newView()
  const acting = (act: RowAct) =>
    route(
      act === 'requeue' ? TABLE_ROUTES.requeueStuckRow : TABLE_ROUTES.failStuckRow,
      async ({ params: { table, id }, body: { reason } }, { caller }) => {
        await coded('changing a row', () => actOnRow(access, { table, id, act, who: caller.who, reason }))
        // What was read before shows the row as it was.
        view = newView()
        await audited({ mill, log }, caller, { action: `row-${act}`, reason, subject: `${table} ${id}` })
        return { table, id }
      },
    )
  return {
    showJobTables: route(TABLE_ROUTES.showJobTables, async () =>
      coded('reading the job tables', async () => (await view.fresh()).value),
    ),
    requeueStuckRow: acting('requeue'),
    failStuckRow: acting('fail'),
  }
}

async function viewOf(access: TableAccess) {
  const recoveryMs = recoveryMsOf(access)
  const { tables } = access.place
  const shown = []
  for (const table of tables) {
    const facts = await readTableFacts(access, table)
    const stuckRows = facts.rows === null || facts.rows.stuck === 0 ? [] : await listStuck(access, table, STUCK_MAX)
    shown.push({ facts, stuckRows })
  }
  const reaper = await readReaperFacts(access, RECENT_MAX)
  const all = shown.map(({ facts }) => facts)
  const known = { tables, isBehind: isBehind(all, recoveryMs), nowMs: await access.serverMs() }
  return {
    tables: shown.map(({ facts: { table, rows }, stuckRows }) => ({ table, isReady: rows !== null, rows, stuckRows })),
    countMax: COUNT_MAX,
    reapers: reaper.sessions,
    recent: reaper.recent,
    findings: [...all.flatMap((facts) => judgeTable(facts, recoveryMs)), ...judgeReaper(reaper, known)],
  }
}

/** Errors of the driver become coded ones, which have a status. */
async function coded<Answer>(during: string, run: () => Promise<Answer>): Promise<Answer> {
  try {
    return await run()
  } catch (error) {
    throw toEngineError(error, during)
  }
}
