import type { AnyJob, Log } from '../job/definition.ts'
import { createLog } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import { toIso } from '../time/iso.ts'
import type { Cli, SharedOptions } from './cli.ts'
import { StopRequest } from './stop-signals.ts'
import { printable, type Style, type Terminal } from './terminal.ts'

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

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

type Fields = Readonly<Record<string, unknown>>

/** Readable lines for a person at a terminal, one JSON object per line for everything else. */
export function openLog(terminal: Terminal, clock: Clock, settings: { json?: true | undefined; level: LogLevel }): Log {
  const forPerson = terminal.columns !== null && settings.json !== true
  if (forPerson) return readableLog(terminal, clock, settings.level)
  return createLog({ level: settings.level, destination: terminal.out })
}

const STYLES: Readonly<Record<LogLevel, Style>> = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' }

/** All lines of a process come from one worker, so a person reads its id once. */
function readableLog(terminal: Terminal, clock: Clock, level: LogLevel): Log {
  let workerShown: unknown
  const write = (of: LogLevel, message: string, fields: Fields = {}): void => {
    if (LOG_LEVELS.indexOf(of) < LOG_LEVELS.indexOf(level)) return
    const time = terminal.paint('dim', toIso(clock.nowMs()).slice(11, 23))
    const label = terminal.paint(STYLES[of], of.toUpperCase().padEnd(5))
    const { worker_id: worker, ...rest } = fields
    const shown = worker === workerShown ? rest : fields
    workerShown = worker ?? workerShown
    const facts = Object.entries(shown).map(([name, value]) => terminal.paint('dim', `${name}=${factOf(value)}`))
    terminal.print([time, label, printable(message), ...facts].join(' '))
  }
  return {
    debug: (message, fields) => write('debug', message, fields),
    info: (message, fields) => write('info', message, fields),
    warn: (message, fields) => write('warn', message, fields),
    error: (message, fields) => write('error', message, fields),
  }
}

function factOf(value: unknown): string {
  if (value instanceof Error) return printable(value.message)
  return printable(typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value)))
}
