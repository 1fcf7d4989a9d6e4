import type { Command } from 'commander'
import { EngineError } from '../../errors.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { checkHealth, type Health, type HealthStatus, type HealthWord, workersOf } from '../../observe/health.ts'
import { wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { formatDuration } from '../format.ts'
import { printable, type Style, type Terminal } from '../terminal.ts'

interface HealthFlags extends SharedOptions {
  readonly minWorkers?: number
  readonly deadLetters?: number
}

export function addHealth(program: Command, cli: Cli): void {
  program
    .command('health')
    .summary('check that work gets done')
    .description(
      'Check that the engine answers, workers run and jobs do not wait too long, and count dead letters. Each check takes a second at most.',
    )
    .option('--min-workers <n>', 'degraded with fewer running workers; 0 if none are expected', wholeNumber)
    .option('--dead-letters <n>', 'unhealthy from this many dead letters', wholeNumber)
    .addHelpText(
      'after',
      `${examples([
        ['millrace health', 'exit 1 if a check is unhealthy'],
        ['millrace health --min-workers 3 --json', 'one JSON object, for a probe'],
      ])}

The status is healthy, degraded (needs a look) or unhealthy (exit 1): that of the worst check.`,
    )
    .action((_options, command: Command) => check(cli, command.optsWithGlobals<HealthFlags>()))
}

async function check(cli: Cli, { minWorkers, deadLetters, ...flags }: HealthFlags): Promise<void> {
  const { terminal, clock } = cli
  const health = await withExistingMill(cli, flags, ({ engine }) => {
    const given = omitUndefined({ minWorkers, deadLetterThreshold: deadLetters })
    return checkHealth({ engine }, { clock, ...given, ...workersOf(engine, clock) })
  })
  if (flags.json) terminal.print(JSON.stringify(health))
  else printHealth(terminal, health)
  if (health.status === 'unhealthy') {
    throw new EngineError('ERR_UNHEALTHY', 'the status is unhealthy; see the checks above')
  }
}

const STYLES: Readonly<Record<HealthWord, Style>> = { healthy: 'green', degraded: 'yellow', unhealthy: 'red' }

function printHealth(terminal: Terminal, { status, reasons, checks }: Health): void {
  const lines: readonly (readonly [name: string, check: HealthStatus, detail: string])[] = [
    ['engine', checks.engine, checks.engine.latency === undefined ? '' : `answers in ${checks.engine.latency} ms`],
    ['workers', checks.workers, `${checks.workers.details?.count ?? 'unknown'} running`],
    ['queues', checks.queues, waitingText(checks.queues)],
    ['dead letters', checks.deadLetters, String(checks.deadLetters.details?.count ?? 'unknown')],
  ]
  const width = 'dead letters'.length
  for (const [name, { status: word, error }, detail] of lines) {
    const said = error === undefined ? detail : printable(error)
    terminal.print(`${terminal.paint(STYLES[word], word.padEnd('unhealthy'.length))}  ${name.padEnd(width)}  ${said}`)
  }
  terminal.print(`\n${terminal.paint(STYLES[status], status)}`)
  for (const { text } of reasons) terminal.print(`- ${printable(text)}`)
}

function waitingText({ details }: HealthStatus): string {
  const { count = 0, oldestWaiting = null } = details ?? {}
  const types = `${count} type${count === 1 ? '' : 's'}`
  const unclaimed = Object.values(details?.unclaimed ?? {}).reduce((sum, ready) => sum + ready, 0)
  if (unclaimed > 0) return `${types}, ${unclaimed} jobs wait for a worker`
  return oldestWaiting === null ? `${types}, nothing is due` : `${types}, longest wait ${formatDuration(oldestWaiting)}`
}
