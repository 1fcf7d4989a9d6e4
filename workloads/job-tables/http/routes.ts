import type { Mill } from '../../../src/client/mill.ts'
import { toEngineError } from '../../../src/engines/postgres/faults.ts'
import { type Route, route } from '../../../src/http/index.ts'
import type { Log } from '../../../src/job/definition.ts'
import { errorText } from '../../../src/job/error-record.ts'
import { silentLog } from '../../../src/observe/log.ts'
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

const STUCK_MAX = 20
const RECENT_MAX = 30
/** Figures rest this many times as long as it took to read them, so that pages cost the database at most a twentieth of its time. */
const REST = 20
const REST_MS_MIN = 1_000

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
  const { clock = systemClock, log = silentLog, ...place } = options
  const access = new TableAccess(database, place)
  const view = resting(clock, () => viewOf(access))
  const acting = (act: RowAct) =>
    route(
      act === 'requeue' ? TABLE_ROUTES.requeueStuckRow : TABLE_ROUTES.failStuckRow,
      async ({ params: { table, id }, body: { reason } }, { caller: { who } }) => {
        await coded('changing a row', () => actOnRow(access, { table, id, act, who, reason }))
        view.forget()
        await note(mill, log, { who, reason, action: `row-${act}`, subject: `${table} ${id}` })
        return { table, id }
      },
    )
  return {
    showJobTables: route(TABLE_ROUTES.showJobTables, () => coded('reading the job tables', view.read)),
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

/** Callers share one reading, and get it again until it has rested. */
function resting<View>(clock: Clock, read: () => Promise<View>) {
  let kept: { readonly view: Promise<View>; untilMs: number } | null = null
  return {
    read: (): Promise<View> => {
      if (kept !== null && clock.monotonicMs() < kept.untilMs) return kept.view
      const startedMs = clock.monotonicMs()
      const now = { view: read(), untilMs: Number.POSITIVE_INFINITY }
      kept = now
      const ended = (): void => {
        const endedMs = clock.monotonicMs()
        now.untilMs = endedMs + Math.max(REST_MS_MIN, REST * (endedMs - startedMs))
      }
      // An error does not rest: the next caller asks again.
      now.view.then(ended, () => (now.untilMs = 0))
      return now.view
    },
    forget: (): void => {
      kept = null
    },
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

/** The act is done and has its event: a failure to note it must not invite the operator to repeat it. */
async function note(mill: Mill, log: Log, act: Parameters<Mill['note']>[0]): Promise<void> {
  const line = { who: act.who, action: act.action, subject: act.subject }
  if (mill.engine.deadLetters === undefined) return log.info('A manual action', line)
  try {
    await mill.note(act)
  } catch (error) {
    log.error('A manual action could not be audited', { ...line, error: errorText(error) })
  }
}
