import type { Command } from 'commander'
import { EngineError } from '../../errors.ts'
import type { Health, HealthStatus, HealthWord } from '../../observe/health.ts'
import { checkHealth } from '../../observe/health.ts'
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
    .summary('say whether work is being done')
    .description(
      'Ask whether the engine answers, workers run, jobs wait too long, and how many are dead letters: each for a second at most.',
    )
    .option('--min-workers <n>', 'fewer running workers are degraded; 0 where none is expected', wholeNumber)
    .option('--dead-letters <n>', 'from this many dead letters on it is unhealthy', wholeNumber)
    .addHelpText(
      'after',
      `${examples([
        ['millrace health', 'exit 1 if anything is unhealthy'],
        ['millrace health --min-workers 3 --json', 'one JSON object, for a probe'],
      ])}

healthy, degraded (someone should look) and unhealthy (exit 1); the worst of the checks decides.`,
    )
    .action((_options, command: Command) => check(cli, command.optsWithGlobals<HealthFlags>()))
}

async function check(cli: Cli, { minWorkers, deadLetters, ...flags }: HealthFlags): Promise<void> {
  const { terminal, clock } = cli
  const health = await withExistingMill(cli, flags.engine, ({ engine }) => {
    // Where the engine does not know its workers, none are asked for.
    const presence = engine.presence ?? { list: async () => [] }
    const expected = engine.presence === undefined ? 0 : minWorkers
    return checkHealth(
      { engine },
      {
        presence,
        clock,
        ...(expected !== undefined && { minWorkers: expected }),
        ...(deadLetters !== undefined && { deadLetterThreshold: deadLetters }),
      },
    )
  })
  if (flags.json) terminal.print(JSON.stringify(health))
  else printHealth(terminal, health)
  if (health.status === 'unhealthy') {
    throw new EngineError('ERR_UNHEALTHY', `the health is 'unhealthy'; see the checks above`)
  }
}

const STYLES: Readonly<Record<HealthWord, Style>> = { healthy: 'green', degraded: 'yellow', unhealthy: 'red' }

function printHealth(terminal: Terminal, { status, checks }: Health): void {
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
}

function waitingText({ details }: HealthStatus): string {
  const { count = 0, oldestWaiting = null } = details ?? {}
  const types = `${count} type${count === 1 ? '' : 's'}`
  return oldestWaiting === null
    ? `${types}, nothing is due`
    : `${types}, one has waited ${formatDuration(oldestWaiting)}`
}
