import type { Command } from 'commander'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { COUNT_COLUMNS, countCells, totalOf } from '../format.ts'
import { printable, printTable } from '../terminal.ts'

export function addStats(program: Command, cli: Cli): void {
  program
    .command('stats')
    .summary('count jobs by type and state')
    .description('Count the jobs of each type by state, without cancelled and superseded ones.')
    .addHelpText(
      'after',
      examples([
        ['millrace stats', 'a table with totals'],
        ['millrace stats --json', 'a line per type; the last one, of type "*", is the total'],
      ]),
    )
    .action((_options, command: Command) => showStats(cli, command.optsWithGlobals<SharedOptions>()))
}

async function showStats(cli: Cli, options: SharedOptions): Promise<void> {
  const counts = await withExistingMill(cli, options, (mill) => mill.counts())
  const { terminal } = cli
  const lines = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))
  // '*' is not a valid type, so a script cannot mistake the total for one.
  lines.push(['*', totalOf(counts)])
  if (options.json) {
    for (const [type, of] of lines) terminal.print(JSON.stringify({ type, ...of }))
    return
  }
  const rows = lines.map(([type, of]) => [
    type === '*' ? terminal.paint('bold', 'total') : printable(type),
    ...countCells(of, terminal.paint),
  ])
  printTable(terminal, [{ title: 'TYPE' }, ...COUNT_COLUMNS], rows)
}
