import { type Command, Option } from 'commander'
import type { Mill } from '../../client/mill.ts'
import type { AnyJob } from '../../job/definition.ts'
import type { KeeperOptions } from '../../keeper/keeper.ts'
import { type Cli, duration, examples, type SharedOptions, withStoredMillUntil } from '../cli.ts'
import { loadJobs } from '../modules.ts'
import type { StopRequest } from '../stop-signals.ts'
import { LOG_LEVELS, type LogLevel, runUntilStopped } from '../until-stopped.ts'
import { type Serve, serveNothing } from './serve.ts'

export function addKeep(program: Command, cli: Cli): void {
  program
    .command('keep')
    .summary('run schedules, reap dead workers and tidy up, without working')
    .description('Run what is due on the clock until SIGTERM or SIGINT: schedules, reaping, tidying up. Then exit 0.')
    .argument(
      '[jobs...]',
      'modules (.ts, .js, .mjs) that define jobs: their schedules are stored, and their rules hold',
    )
    .option('--interval <duration>', 'another keeper takes over within twice this; 5s unless told', duration)
    .option('--reap <duration>', 'how often to look for jobs of dead workers; 30s unless told', duration)
    .option('--no-reap', 'leave that to another process')
    .addOption(new Option('--log-level <level>', 'the least that is logged').choices(LOG_LEVELS).default('info'))
    .addHelpText(
      'after',
      `${examples([
        ['millrace keep', 'whatever is stored'],
        ['millrace keep jobs.ts', 'and the schedules that jobs.ts declares'],
        ['millrace keep --interval 1s', 'so that another one takes over within 2 seconds'],
      ])}

Every worker runs a keeper too, so this is for machines on which no worker runs, or where none should spend its time on it.
Start as many as you like: one is active, and the others wait to take over. A tick is run once, whoever runs it.`,
    )
    .action(async (modules: readonly string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<KeeperFlags>()
      await runKeeper(cli, async () => (modules.length === 0 ? [] : loadJobs(modules)), flags)
    })
}

export interface KeeperFlags extends SharedOptions {
  readonly interval?: number
  /** False for --no-reap, true when nothing was said. */
  readonly reap: number | boolean
  readonly logLevel: LogLevel
}

/** A keeper alone, until SIGTERM or SIGINT. Its acts are short, so there is nothing to cut short for whoever insists. */
export async function runKeeper(
  cli: Cli,
  load: () => Promise<readonly AnyJob[]>,
  flags: KeeperFlags,
  serve: Serve = serveNothing,
): Promise<void> {
  await runUntilStopped(cli, load, flags, async ({ stop, log, jobs }) => {
    const options: KeeperOptions = {
      jobs,
      ...(flags.interval !== undefined && { interval: flags.interval }),
      ...(flags.reap !== true && { reap: flags.reap }),
    }
    await withStoredMillUntil(stop, flags.engine, { log, clock: cli.clock }, async (mill) => {
      const serving = await stop.unlessStopped(serve(mill, jobs, log), (late) => late.close())
      if (serving === null) return
      try {
        await keepUntilStopped(stop, mill, options)
      } finally {
        await serving.close()
      }
    })
  })
}

async function keepUntilStopped(stop: StopRequest, mill: Mill, options: KeeperOptions): Promise<void> {
  const keeper = await stop.unlessStopped(mill.keep(options), (late) => late.stop())
  if (keeper === null) return
  await stop.unlessStopped(keeper.stopped)
  await keeper.stop()
}
