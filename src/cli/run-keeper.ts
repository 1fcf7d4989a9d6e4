import type { Mill } from '../client/mill.ts'
import type { AnyJob } from '../job/definition.ts'
import type { KeeperOptions } from '../keeper/keeper.ts'
import { type Cli, type SharedOptions, withStoredMill } from './cli.ts'
import { type LogLevel, openLog } from './log.ts'
import { type Serve, serveNothing } from './serving.ts'
import { onStopSignals } from './stop-signals.ts'

export interface KeeperFlags extends SharedOptions {
  readonly interval?: number
  /** False for --no-reap, true when nothing was said. */
  readonly reap: number | boolean
  readonly logLevel: LogLevel
}

/** A keeper alone, until SIGTERM or SIGINT. */
export async function runKeeper(
  cli: Cli,
  jobs: readonly AnyJob[],
  flags: KeeperFlags,
  serve: Serve = serveNothing,
): Promise<void> {
  const log = openLog(cli.terminal, cli.clock, { json: flags.json, level: flags.logLevel })
  const options: KeeperOptions = {
    jobs,
    ...(flags.interval !== undefined && { interval: flags.interval }),
    ...(flags.reap !== true && { reap: flags.reap }),
  }
  await withStoredMill(flags.engine, { log, clock: cli.clock }, async (mill) => {
    const serving = await serve(mill, jobs, log)
    try {
      await keepUntilStopped(cli, mill, options)
    } finally {
      await serving.close()
    }
  })
}

async function keepUntilStopped({ clock }: Cli, mill: Mill, options: KeeperOptions): Promise<void> {
  const keeper = await mill.keep(options)
  // Its acts are short, so there is nothing to cut short for whoever insists.
  const unsubscribe = onStopSignals(
    clock,
    () => void keeper.stop(),
    () => {},
  )
  await keeper.stopped
  unsubscribe()
}
