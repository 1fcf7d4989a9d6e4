/** What the commands that run until SIGTERM or SIGINT share: how they start, log and stop. */

import { Option } from 'commander'
import { type Mill, open } from '../client/mill.ts'
import type { MillOptions } from '../client/options.ts'
import type { Log } from '../job/definition.ts'
import { createLog } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import { toIso } from '../time/iso.ts'
import { type Cli, type SharedOptions, throwIfNotStored } from './cli.ts'
import { StopRequest } from './stop-signals.ts'
import { printable, type Style, type Terminal } from './terminal.ts'
import { boundYoungHeap } from './young-heap.ts'

interface Started<Loaded> {
  readonly stop: StopRequest
  readonly log: Log
  readonly loaded: Loaded
}

/** In the help of every command that runs until it is stopped, behind what SIGTERM and SIGINT do. */
export const SIGHUP_HELP =
  'SIGHUP, which a closed terminal sends, ends it at once without a clean stop: start it with nohup, in tmux, or under a supervisor.'

/** Listens for signals before its first wait. A stop while `load` runs ends it before `run`. */
export async function runUntilStopped<Loaded>(
  cli: Cli,
  load: () => Promise<Loaded>,
  flags: SharedOptions & { readonly logLevel: LogLevel },
  run: (started: Started<Loaded>) => Promise<void>,
): Promise<void> {
  boundYoungHeap()
  const stop = new StopRequest(cli.clock)
  cli.terminal.outliveReader()
  const log = openLog(cli.terminal, cli.clock, { json: flags.json, level: flags.logLevel })
  try {
    const loaded = await stop.unlessStopped(load())
    if (loaded !== null) await run({ stop, log, loaded })
  } finally {
    stop.close()
  }
}

/** `withStoredMill` for a command that runs until it is stopped. A stop while the store opens ends it before `use`. */
export async function withStoredMillUntil(
  stop: StopRequest,
  url: string,
  options: MillOptions,
  use: (mill: Mill) => Promise<void>,
): Promise<void> {
  const mill = await stop.unlessStopped(open(url, options), (late) => late.close())
  if (mill === null) return
  try {
    throwIfNotStored(mill)
    await use(mill)
  } finally {
    await mill.close()
  }
}

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** `--log-level`. */
export function logLevelOption(): Option {
  return new Option('--log-level <level>', 'the lowest level to log').choices(LOG_LEVELS).default('info')
}

type Fields = Readonly<Record<string, unknown>>

/** Readable lines on a terminal, one JSON object per line elsewhere. */
export function openLog(terminal: Terminal, clock: Clock, settings: { json?: true | undefined; level: LogLevel }): Log {
  const forPerson = terminal.columns !== null && settings.json !== true
  if (forPerson) return readableLog(terminal, clock, settings.level)
  return createLog({ level: settings.level, destination: terminal.out })
}

const STYLES: Readonly<Record<LogLevel, Style>> = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' }

/** Most lines of a process come from one worker, so its id is printed once. */
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
