/** docs/cli.md: the page of commands, written from the commands themselves. */
import { PassThrough } from 'node:stream'
import type { Command } from 'commander'
import { systemClock } from '../time/clock.ts'
import { type CommandNode, nodesOf, teachingOf, treeOf } from './command-tree.ts'
import type { CliExtensions } from './extensions.ts'
import { buildProgram } from './program.ts'
import type { Terminal } from './terminal.ts'

/** Nobody reads what it prints: the commands are looked at, and none is run. */
const NOWHERE: Terminal = {
  out: new PassThrough(),
  columns: null,
  print: () => {},
  complain: () => {},
  paint: (_style, text) => text,
  flush: async () => {},
  outliveReader: () => {},
  lostReader: false,
}

export function documentCommands(extensions: CliExtensions): string {
  const program = buildProgram({ terminal: NOWHERE, clock: systemClock, extensions })
  const root = treeOf(program)
  const { remarks } = teachingOf(program)
  return `${[
    '# Command line',
    'Written by `npm run cli-reference` from the commands themselves; change those, not this page.',
    'In a clone: `npm run millrace -- <command>`. The same text is in `millrace help <command>`, with your shell’s own width.',
    fenced('text', remarks),
    'Tables are for people; `--json` prints one object per line for programs. Colours are for terminals, and `NO_COLOR` turns them off.',
    '## Options of every command',
    optionTable(program),
    ...nodesOf(root).slice(1).map(section),
  ].join('\n\n')}\n`
}

function section({ path, command, children }: CommandNode): string {
  const heading = `${'#'.repeat(1 + Math.min(2, path.length))} millrace ${path.join(' ')}`
  const { examples, remarks } = teachingOf(command)
  const width = Math.max(...examples.map(({ line }) => line.length))
  const lines = examples.map(({ line, meaning }) => `${line.padEnd(width)}  # ${meaning}`)
  return [
    heading,
    command.description(),
    fenced('sh', command.createHelp().commandUsage(command)),
    argumentTable(command),
    children.length === 0 ? optionTable(command) : '',
    fenced('sh', lines.join('\n')),
    remarks,
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``
}

function argumentTable(command: Command): string {
  const help = command.createHelp()
  return table(
    'argument',
    command.registeredArguments.map((one) => [one.name(), help.argumentDescription(one)]),
  )
}

/** Its own options: those of every command are listed once. */
function optionTable(command: Command): string {
  const help = command.createHelp()
  const options = command.options.filter(({ hidden }) => !hidden)
  return table(
    'option',
    options.map((one) => [one.flags, help.optionDescription(one)]),
  )
}

function table(title: string, rows: readonly (readonly [name: string, meaning: string])[]): string {
  if (rows.length === 0) return ''
  const lines = rows.map(([name, meaning]) => `| \`${cell(name)}\` | ${cell(meaning).replaceAll('<', '&lt;')} |`)
  return [`| ${title} | |`, '|---|---|', ...lines].join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replace(/\s+/g, ' ')
}
