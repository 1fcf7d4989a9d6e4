import type { AnyJob, Log } from '../job/definition.ts'
import type { Cli, SharedOptions } from './cli.ts'
import { type LogLevel, openLog } from './log.ts'
import { StopRequest } from './stop-signals.ts'

interface Started {
  readonly stop: StopRequest
  readonly log: Log
  readonly jobs: readonly AnyJob[]
}

/**
 * How every command that runs until it is stopped begins and ends. It listens for signals before its first wait; a stop
 * while `load` brings the jobs ends it, and `run` is not called.
 */
export async function runUntilStopped(
  cli: Cli,
  load: () => Promise<readonly AnyJob[]>,
  flags: SharedOptions & { readonly logLevel: LogLevel },
  run: (started: Started) => Promise<void>,
): Promise<void> {
  const stop = new StopRequest(cli.clock)
  cli.terminal.outliveReader()
  const log = openLog(cli.terminal, cli.clock, { json: flags.json, level: flags.logLevel })
  try {
    const jobs = await stop.unlessStopped(load())
    if (jobs !== null) await run({ stop, log, jobs })
  } finally {
    stop.close()
  }
}
