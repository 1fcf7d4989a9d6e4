import type { Command } from 'commander'
import type { Mill } from '../../client/mill.ts'
import { UnsupportedError } from '../../errors.ts'
import type { AnyJob } from '../../job/definition.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { KeeperOptions } from '../../keeper/keeper.ts'
import { duration } from '../arguments.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { loadJobs } from '../modules.ts'
import type { StopRequest } from '../stop-signals.ts'
import { type LogLevel, logLevelOption, runUntilStopped, SIGHUP_HELP, withStoredMillUntil } from '../until-stopped.ts'
import { addMetricsOptions, type MetricsFlags, serveMetrics } from './metrics.ts'
import type { Serve } from './serve.ts'

export function addKeep(program: Command, cli: Cli): void {
  addMetricsOptions(
    program
      .command('keep')
      .summary('run schedules, reaping and retention without a worker')
      .description('Run schedules, reaping and retention until SIGTERM or SIGINT, then exit 0.')
      .argument('[jobs...]', 'modules (.ts, .js, .mjs) that define jobs, to store their schedules and use their rules')
      .option('--interval <duration>', 'another keeper takes over within twice this time (default: 5s)', duration)
      .option('--reap <duration>', 'how often to look for jobs of dead workers (default: 30s)', duration)
      .option('--no-reap', 'leave reaping to another process'),
  )
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `${examples([
        ['millrace keep', 'everything that is stored'],
        ['millrace keep jobs.ts', 'also the schedules that jobs.ts declares'],
        ['millrace keep --interval 1s', 'another keeper takes over within 2 seconds'],
        ['millrace keep --metrics-port 9110', 'metrics for Prometheus at http://127.0.0.1:9110/metrics'],
      ])}

Every worker runs a keeper too, so use this where no worker runs, or to take the load off workers.
Start as many as you like: one is active, the others stand by. Each tick runs once.
It stops within a moment, so a second signal changes nothing. ${SIGHUP_HELP}`,
    )
    .action(async (modules: readonly string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<KeeperFlags & MetricsFlags>()
      const load = async () => (modules.length === 0 ? [] : loadJobs(modules))
      await runKeeper(cli, load, flags, { serve: serveMetrics(cli, flags), whenIdle: 'refuse' })
    })
}

export interface KeeperFlags extends SharedOptions {
  readonly interval?: number
  /** False for --no-reap, true without either option. */
  readonly reap: number | boolean
  readonly logLevel: LogLevel
}

/** What to do on an engine that leaves nothing to a keeper. */
type WhenIdle = 'refuse' | 'go on'

/** A keeper's work is short, so a second signal has nothing to cut short. */
export async function runKeeper(
  cli: Cli,
  load: () => Promise<readonly AnyJob[]>,
  flags: KeeperFlags,
  { serve, whenIdle }: { readonly serve: Serve; readonly whenIdle: WhenIdle },
): Promise<void> {
  await runUntilStopped(cli, load, flags, async ({ stop, log, loaded: jobs }) => {
    const options: KeeperOptions = {
      jobs,
      ...omitUndefined({ interval: flags.interval }),
      ...(flags.reap !== true && { reap: flags.reap }),
    }
    const opening = { log, clock: cli.clock, ...omitUndefined({ presence: flags.presence }) }
    await withStoredMillUntil(stop, flags.engine, opening, async (mill) => {
      const serving = await stop.unlessStopped(serve(mill, { jobs, log }), (late) => late.close())
      if (serving === null) return
      try {
        await keepUntilStopped(stop, mill, options, whenIdle)
      } finally {
        await serving.close()
      }
    })
  })
}

async function keepUntilStopped(
  stop: StopRequest,
  mill: Mill,
  options: KeeperOptions,
  whenIdle: WhenIdle,
): Promise<void> {
  const keeper = await stop.unlessStopped(mill.keep(options), (late) => late.stop())
  if (keeper === null) return
  await stop.unlessStopped(keeper.stopped)
  if (!stop.signal.aborted) {
    if (whenIdle === 'refuse') throw idle(mill)
    await stop.unlessStopped(new Promise(() => {}))
  }
  await keeper.stop()
}

function idle({ engine: { name } }: Mill): UnsupportedError {
  const limit = 'has nothing for a keeper to do: it has no schedules and no retention, and recovers jobs by itself'
  return new UnsupportedError({ engine: name, limit })
}
