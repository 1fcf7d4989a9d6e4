import type { Mill } from '../client/mill.ts'
import type { AnyJob } from '../job/definition.ts'
import type { KeeperOptions } from '../keeper/keeper.ts'
import { type Cli, type SharedOptions, withStoredMillUntil } from './cli.ts'
import type { LogLevel } from './log.ts'
import { type Serve, serveNothing } from './serving.ts'
import type { StopRequest } from './stop-signals.ts'
import { runUntilStopped } from './until-stopped.ts'

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
