import type { Command } from 'commander'
import type { TypeCounts } from '../../engine/engine.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { printTable } from '../table.ts'
import { printable, type Style } from '../terminal.ts'

export function addStats(program: Command, cli: Cli): void {
  program
    .command('stats')
    .summary('count jobs by type and state')
    .description(
      'Count the jobs of each type by what they are doing now. Cancelled and superseded jobs are not counted.',
    )
    .addHelpText(
      'after',
      examples([
        ['millrace stats', 'a table with totals'],
        ['millrace stats --json', `a line per type; the last, of type "*", is the total`],
      ]),
    )
    .action((_options, command: Command) => showStats(cli, command.optsWithGlobals<SharedOptions>()))
}

const NONE: TypeCounts = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }

const COLUMNS: readonly { readonly title: string; readonly name: keyof TypeCounts; readonly style: Style }[] = [
  { title: 'READY', name: 'ready', style: 'blue' },
  { title: 'DELAYED', name: 'delayed', style: 'blue' },
  { title: 'RUNNING', name: 'inProgress', style: 'cyan' },
  { title: 'COMPLETED', name: 'completed', style: 'green' },
  { title: 'DEAD', name: 'dead', style: 'red' },
]

async function showStats(cli: Cli, options: SharedOptions): Promise<void> {
  const counts = await withExistingMill(cli, options.engine, (mill) => mill.counts())
  const { terminal } = cli
  const lines = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))
  // No type can be called '*', so a script cannot mistake the total for one.
  lines.push(['*', Object.values(counts).reduce(sum, NONE)])
  if (options.json) {
    for (const [type, of] of lines) terminal.print(JSON.stringify({ type, ...of }))
    return
  }
  const columns = [{ title: 'TYPE' }, ...COLUMNS.map(({ title }) => ({ title, align: 'right' as const }))]
  const rows = lines.map(([type, of]) => [
    type === '*' ? terminal.paint('bold', 'total') : printable(type),
    ...COLUMNS.map(({ name, style }) => terminal.paint(of[name] === 0 ? 'dim' : style, String(of[name]))),
  ])
  printTable(terminal, columns, rows)
}

function sum(left: TypeCounts, right: TypeCounts): TypeCounts {
  return {
    ready: left.ready + right.ready,
    delayed: left.delayed + right.delayed,
    inProgress: left.inProgress + right.inProgress,
    completed: left.completed + right.completed,
    dead: left.dead + right.dead,
  }
}
