import type { JobTableCommands, OpenReaper } from '../../src/cli/extensions.ts'
import type { Log } from '../../src/job/definition.ts'
import type { Clock } from '../../src/time/clock.ts'
import { TableAccess } from './access.ts'
import { type Connected, connectTo, REAPER_SESSION } from './connect.ts'
import { examineTables } from './doctor.ts'
import { openReaperMetrics } from './metrics.ts'
import { migrateTables } from './migration.ts'
import { Reaper } from './reaper.ts'
import { HANGING_MS_DEFAULT, ReaperHealth } from './reaper-health.ts'
import { startReaper } from './service.ts'
import { type Environment, readTableSettings } from './settings.ts'

/** What the commands with `--tables` call. */
export const jobTables: JobTableCommands = {
  reap(url, tables, { environment, onReaped }) {
    const settings = readTableSettings(environment)
    const run = ({ database, schema }: Connected) =>
      new Reaper(database, { tables, schema, settings, onReaped }).runOnce()
    return using(url, run, REAPER_SESSION)
  },
  openReaper,
  migrate: (url, tables, { dryRun, create }) =>
    using(url, ({ database, schema }) => migrateTables(database, { tables, schema, dryRun, create })),
  examine(url, tables, { environment }) {
    const settings = readTableSettings(environment)
    return using(url, ({ database, schema }) => examineTables(new TableAccess(database, { tables, schema, settings })))
  },
}

async function using<Answer>(
  url: string,
  run: (connected: Connected) => Promise<Answer>,
  name?: string,
): Promise<Answer> {
  const connected = await connectTo(url, name === undefined ? {} : { name })
  try {
    return await run(connected)
  } finally {
    await connected.close()
  }
}

interface ServiceParts {
  readonly environment: Environment
  readonly everyMs: number | null
  readonly log: Log
  readonly clock: Clock
}

async function openReaper(
  url: string,
  tables: readonly string[],
  { environment, everyMs, log, clock }: ServiceParts,
): Promise<OpenReaper> {
  const settings = readTableSettings(environment)
  const metrics = await openReaperMetrics()
  const { schema, answerMs, ...connected } = await connectTo(url, { name: REAPER_SESSION, staysConnected: true })
  const health = new ReaperHealth({ ...connected, clock, hangingMs: Math.max(HANGING_MS_DEFAULT, 2 * answerMs) })
  const reaper = new Reaper(health.watched, { tables, schema, settings, clock, log, metrics })
  const { onStarted, onEnded, probes } = health
  return {
    metrics,
    probes,
    start() {
      const intervalMs = everyMs ?? settings.intervalSec * 1_000
      log.info('Reaper started', { tables, schema, interval_sec: intervalMs / 1_000 })
      const service = startReaper(reaper, { everyMs: intervalMs, onStarted, onEnded })
      return {
        async stop() {
          await service.stop()
          log.info('Reaper stopped')
        },
      }
    },
    close: connected.close,
  }
}
