/**
 * Worker processes on Postgres, killed and paused at random while jobs come in, and in the middle the primary is killed
 * for good and its standby promoted. `node test/chaos/postgres-failover.ts [synchronous|asynchronous]` runs it once;
 * `CHAOS_SEED` repeats a run.
 *
 * With a synchronous standby nothing that was acknowledged may be missing. With an asynchronous one, what happened in the
 * last second before the failover may be undone, and nothing else.
 */
import { migrate } from '../../src/engines/postgres/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { type OwnPostgres, query, schemaUrl, startPostgres } from '../servers/postgres.ts'
import { type Line, machineMs } from './history.ts'
import { type ChaosOptions, type ChaosReport, printReport, runKillChaos } from './kill.ts'

export type Replication = 'synchronous' | 'asynchronous'

/** The standby is a moment behind; a second is far more than it takes on one machine. */
const UNDONE_MS = 1_000

export interface FailoverReport extends ChaosReport {
  readonly replication: Replication
  /** From the end of the old primary to the first write on the new one, in milliseconds. */
  readonly promotedMs: number
  /** From the end of the old primary to the next accepted completion. */
  readonly workingAgainMs: number
  /** What would be violations, had it not happened in the last second before. */
  readonly undone: readonly string[]
}

export async function runFailoverChaos(
  replication: Replication,
  options: Omit<ChaosOptions, 'url' | 'disasters'>,
): Promise<FailoverReport> {
  await using servers = new AsyncDisposableStack()
  const own = async (...settings: string[]): Promise<OwnPostgres> => {
    const server = await startPostgres(['fsync=on', 'full_page_writes=on', ...settings])
    servers.defer(() => server.stop())
    return server
  }
  const primary = await own(...(replication === 'synchronous' ? ['synchronous_standby_names=standby'] : []))
  const standby = await own(`standby-of=${primary.data}`)
  const { url } = schemaUrl(primary)
  await migrate(url, { clock: systemClock, migrate: true })
  const both = url.replace(hostOf(primary), `${hostOf(primary)},${hostOf(standby)}`)
  let [killedAtMs, promotedMs] = [0, 0]
  const failover = async (): Promise<void> => {
    killedAtMs = machineMs()
    await primary.kill()
    await query(standby.url, 'select pg_promote()')
    promotedMs = Math.round(machineMs() - killedAtMs)
  }
  const report = await runKillChaos({ ...options, url: both, disasters: [failover] })
  const undone = replication === 'synchronous' ? [] : report.violations.filter(mayBeUndone(report, killedAtMs))
  const next = report.lines.find(({ what, atMs }) => what === 'accepted' && atMs > killedAtMs + promotedMs)
  return {
    ...report,
    ...{ replication, promotedMs, undone },
    workingAgainMs: Math.round((next?.atMs ?? Number.POSITIVE_INFINITY) - killedAtMs),
    violations: report.violations.filter((violation) => !undone.includes(violation)),
  }
}

function hostOf({ url }: OwnPostgres): string {
  return new URL(url).host
}

/** Whether the violation is about a job that was acknowledged or completed just before the failover. */
function mayBeUndone({ acknowledged, lines }: ChaosReport, killedAtMs: number): (violation: string) => boolean {
  const isLate = (atMs: number): boolean => atMs > killedAtMs - UNDONE_MS && atMs <= killedAtMs + UNDONE_MS
  const late = new Set([
    ...[...acknowledged].filter(([, atMs]) => isLate(atMs)).map(([id]) => id),
    ...lines.filter(({ what, atMs }: Line) => what !== 'done' && isLate(atMs)).map(({ id }) => id),
  ])
  return (violation) => late.has(/job (\S+)/.exec(violation)?.[1] ?? '')
}

if (import.meta.main) {
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  const replication: Replication = process.argv[2] === 'asynchronous' ? 'asynchronous' : 'synchronous'
  console.log(`seed ${seed}, ${replication} standby`)
  const report = await runFailoverChaos(replication, {
    ...{ jobs: 10_000, trickle: 4_000, jobMsMax: 300, processes: 4 },
    ...{ chaosMs: 40_000, finishMs: 120_000 },
    seed,
  })
  printReport(report)
}
