import type { Command } from 'commander'
import { OptionError, UnsupportedError } from '../../errors.ts'
import type { JobFacts } from '../../events.ts'
import { redact } from '../../job/error-record.ts'
import { reapOnce } from '../../keeper/reaper.ts'
import { newWorkerId } from '../../worker/worker-id.ts'
import { duration, tableNames } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { EXIT } from '../exit.ts'
import type { ReapedRow } from '../extensions.ts'
import { loadJobs } from '../modules.ts'
import { printable } from '../terminal.ts'
import { type LogLevel, logLevelOption, runUntilStopped, SIGHUP_HELP } from '../until-stopped.ts'
import { type MetricsFlags, metricsHostOption, metricsPortOption, refuseHostAlone, serveProbes } from './metrics.ts'

interface ReapOptions extends SharedOptions, Pick<MetricsFlags, 'metricsPort' | 'metricsHost'> {
  readonly jobs?: readonly string[]
  readonly tables?: readonly string[]
  /** In milliseconds; true for the interval of the environment. */
  readonly every?: number | true
  readonly logLevel: LogLevel
}

export function addReap(program: Command, cli: Cli): void {
  program
    .command('reap')
    .summary('recover the jobs of dead workers')
    .description(
      'Recover the jobs of dead workers, once. A job whose lease has expired is retried or becomes a dead letter. With --tables and --every: rows of your own job tables, until SIGTERM or SIGINT.',
    )
    .option('--jobs <modules...>', 'modules that define the types, to use their backoff')
    .option('--tables <names>', 'reap rows of your own job tables on Postgres instead', tableNames)
    .option('--every [duration]', 'with --tables: run again and again (default: REAPER_INTERVAL_SEC, or 60s)', duration)
    .addOption(metricsPortOption())
    .addOption(metricsHostOption())
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `${examples([
        ['millrace reap', 'one pass'],
        ['millrace reap --json', 'a line per job, then one with the totals'],
        ['millrace reap --tables jobs,asr_jobs', 'expired leases in your own job tables, once, for cron'],
        ['millrace reap --tables jobs,asr_jobs --every 60s', 'the same as a service, for pm2 or systemd'],
        [
          'millrace reap --tables jobs --every --metrics-port 9101',
          'with /metrics, /health, /health/live, /health/ready',
        ],
      ])}

Running workers and 'millrace keep' reap the engine's own jobs every 30 seconds. Use it without them, or from cron.
With --every, SIGTERM and SIGINT end it after its current pass with exit 0; a second signal, more than a second after the
first, ends it at once with exit 1. What was reaped stays: a pass is one transaction. While the database is away it
retries, logs that, answers /health/ready with 503, and goes on when it is back. /health/live is 503 only if a run hangs.
${SIGHUP_HELP}
The variables of the environment, such as DEFAULT_LEASE_SEC, are in docs/postgres-tables.md.`,
    )
    .action((_options, command: Command) => reap(cli, command.optsWithGlobals<ReapOptions>()))
}

interface Recovered {
  readonly job: JobFacts
  readonly attempt: number
  readonly outcome: { readonly kind: string }
}

async function reap(cli: Cli, options: ReapOptions): Promise<void> {
  const { tables, every, metricsPort } = options
  if (tables === undefined && every !== undefined)
    throw new OptionError(`--every goes with --tables; for the engine's own jobs run 'millrace keep'`)
  if (every === undefined && metricsPort !== undefined)
    throw new OptionError('--metrics-port serves a reaper that goes on; add --tables and --every')
  refuseHostAlone(options)
  if (tables !== undefined && options.jobs !== undefined)
    throw new OptionError('--jobs are definitions for the engine; leave it out with --tables')
  if (tables !== undefined && every !== undefined) return reapTablesUntilStopped(cli, options, tables, every)
  if (tables !== undefined) return reapTables(cli, options, tables)
  const { terminal, clock } = cli
  const jobs = options.jobs === undefined ? [] : await loadJobs(options.jobs)
  const definitions = new Map(jobs.map((job) => [job.type, job]))
  const recovered: Recovered[] = []
  const { retried, dead } = await withExistingMill(cli, options, (mill) => {
    mill.events.on('lease.reaped', (event) => recovered.push(event))
    const { engine, events } = mill
    if (engine.capabilities.recovery !== 'reaper') {
      throw new UnsupportedError({ engine: engine.name, limit: 'recovers expired leases by itself' })
    }
    return reapOnce({
      engine,
      events,
      definitions,
      clock,
      random: Math.random,
      redactor: redact,
      worker: newWorkerId(),
    })
  })
  for (const { job, attempt, outcome } of recovered) {
    const facts = { id: job.id, type: job.type, attempt, attempts: job.attempts, outcome: outcome.kind }
    terminal.print(
      options.json
        ? JSON.stringify(facts)
        : `${printable(job.id)} ${printable(job.type)} ${outcome.kind} (start ${attempt} of ${job.attempts})`,
    )
  }
  terminal.print(options.json ? JSON.stringify({ retried, dead }) : `${retried} back in the queue, ${dead} dead.`)
}

async function reapTables(cli: Cli, options: SharedOptions, tables: readonly string[]): Promise<void> {
  const { terminal } = cli
  const rows: ReapedRow[] = []
  const { jobTables } = await cli.extensions.jobTables()
  const { requeuedIds, failedIds } = await jobTables.reap(options.engine, tables, {
    environment: process.env,
    onReaped: (row) => rows.push(row),
  })
  for (const { table, id, action, attempt, lockedBy } of rows) {
    terminal.print(
      options.json
        ? JSON.stringify({ table, id, action, attempt, lockedBy })
        : `${printable(table)} ${printable(id)} ${action} (start ${attempt}, locked by ${printable(lockedBy ?? '-')})`,
    )
  }
  const [requeued, failed] = [requeuedIds.length, failedIds.length]
  terminal.print(options.json ? JSON.stringify({ requeued, failed }) : `${requeued} requeued, ${failed} failed.`)
}

async function reapTablesUntilStopped(
  cli: Cli,
  options: ReapOptions,
  tables: readonly string[],
  every: number | true,
): Promise<void> {
  if (every === 0) throw new OptionError(`'every' is 0; give an interval such as 60s`)
  const load = async () => (await cli.extensions.jobTables()).jobTables
  await runUntilStopped(cli, load, options, async ({ stop, log, loaded: jobTables }) => {
    await using ends = new AsyncDisposableStack()
    const everyMs = every === true ? null : every
    const { clock } = cli
    const reaper = await jobTables.openReaper(options.engine, tables, {
      environment: process.env,
      everyMs,
      log,
      clock,
    })
    ends.defer(() => reaper.close())
    const { metricsPort: port, metricsHost: host } = options
    if (port !== undefined) {
      const serving = await serveProbes(reaper, { port, host }, log)
      ends.defer(() => serving.close())
    }
    if (stop.signal.aborted) return
    stop.onInsist(() => {
      log.warn('A second signal ends the process at once; the next run goes on where this one ended')
      process.exit(EXIT.failed)
    })
    const running = reaper.start()
    await stop.unlessStopped(new Promise(() => {}))
    await running.stop()
  })
}
