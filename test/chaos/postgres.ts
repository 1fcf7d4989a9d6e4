/**
 * Worker processes on Postgres, killed and paused at random, and the server restarted three times meanwhile: in an
 * orderly way, without a goodbye, and once more. It syncs every commit. `node test/chaos/postgres.ts` runs the full minute.
 */
import { migrate } from '../../src/engines/postgres/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { schemaUrl, startPostgres } from '../servers/postgres.ts'
import { type ChaosOptions, type ChaosReport, printReport, runKillChaos } from './kill.ts'

const RESTARTS = ['restart', 'crash', 'restart'] as const
/** Not told to trust the cache of the machine, as the tests do. */
const DURABLE = ['fsync=on', 'full_page_writes=on']

export interface ServerChaosReport extends ChaosReport {
  /** How long the server was away each time, in milliseconds. */
  readonly awayMs: readonly number[]
}

export async function runServerChaos(options: Omit<ChaosOptions, 'url' | 'disasters'>): Promise<ServerChaosReport> {
  const server = await startPostgres(DURABLE)
  try {
    const { url } = schemaUrl(server)
    await migrate(url, { clock: systemClock, migrate: true })
    const awayMs: number[] = []
    const disasters = RESTARTS.map((how) => async () => {
      const startedAtMs = performance.now()
      await server.restart?.(how)
      awayMs.push(Math.round(performance.now() - startedAtMs))
    })
    const report = await runKillChaos({ ...options, url, disasters })
    return { ...report, awayMs }
  } finally {
    await server.stop()
  }
}

if (import.meta.main) {
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`seed ${seed}`)
  const report = await runServerChaos({
    jobs: 20_000,
    jobMsMax: 600,
    processes: 6,
    chaosMs: 60_000,
    finishMs: 120_000,
    seed,
  })
  printReport(report)
}
