/** What the handler of a job said, for `millrace job --logs` and `--follow`. */
import type { Mill } from '../../client/mill.ts'
import type { JobLog, LogLevel, LogLine } from '../../job/job-log.ts'
import type { JobState } from '../../job/states.ts'
import type { Cli } from '../cli.ts'
import { formatTime } from '../format.ts'
import { printable, type Style } from '../terminal.ts'

const LOOK_MS = 500
/** A worker writes about once a second, so the last lines come after the end of their job. */
const TAIL_MS = 1_500

const STYLES: Readonly<Record<LogLevel, Style>> = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' }

const LIVE: readonly JobState[] = ['queued', 'in_progress', 'failed']

export function printLog(cli: Cli, { lines, dropped }: JobLog): void {
  const { terminal } = cli
  terminal.print('')
  if (lines.length === 0) terminal.print(terminal.paint('dim', 'Its handler has said nothing that is kept.'))
  if (dropped > 0) printGap(cli, dropped)
  for (const line of lines) printLine(cli, line)
}

/** Prints lines as they are written, until the job is over or removed. */
export async function followLog(cli: Cli, mill: Mill, id: string, { json = false }: { json?: boolean | undefined }) {
  let seen = 0
  let endMs: number | null = null
  for (;;) {
    const view = await mill.job(id)
    const { lines } = await mill.logs(id)
    for (const line of lines.filter(({ seq }) => seq > seen)) {
      if (!json && line.seq > seen + 1) printGap(cli, line.seq - seen - 1)
      if (json) cli.terminal.print(JSON.stringify(line))
      else printLine(cli, line)
      seen = line.seq
    }
    if (view === null) return
    if (LIVE.includes(view.state)) endMs = null
    else endMs ??= cli.clock.monotonicMs() + TAIL_MS
    if (endMs !== null && cli.clock.monotonicMs() >= endMs) return
    await cli.clock.sleep(LOOK_MS)
  }
}

function printGap({ terminal }: Cli, lines: number): void {
  terminal.print(terminal.paint('dim', `(${lines} older ${lines === 1 ? 'line is' : 'lines are'} not kept)`))
}

/** Printable, because messages and fields may quote anything. */
function printLine({ terminal }: Cli, { atMs, level, attempt, message, fields }: LogLine): void {
  const facts = Object.entries(fields ?? {}).map(([name, value]) =>
    terminal.paint('dim', printable(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)),
  )
  const head = [terminal.paint('dim', formatTime(atMs)), terminal.paint(STYLES[level], level.toUpperCase().padEnd(5))]
  terminal.print([...head, terminal.paint('dim', `#${attempt}`), printable(message), ...facts].join(' '))
}
