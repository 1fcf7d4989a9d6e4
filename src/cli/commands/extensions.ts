/** The commands of workloads, from their descriptions in `extensions.ts`. */
import { Argument, type Command, Option } from 'commander'
import { omitUndefined } from '../../job/known-options.ts'
import { duration, wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, userName } from '../cli.ts'
import type { CommandCall, ExtensionCommand, ExtensionOption } from '../extensions.ts'
import { printable, printTable } from '../terminal.ts'

export function addExtension(parent: Command, cli: Cli, name: string, extension: ExtensionCommand): void {
  // Called alone, a group lists, as 'dead' and 'schedules' do.
  const isDefault = name === 'list' && parent.parent !== null
  const command = parent.command(name, { isDefault })
  const { commands = {}, remarks, load } = extension
  command.summary(extension.summary).description(extension.description)
  for (const { form, meaning } of extension.arguments ?? []) command.addArgument(new Argument(form, meaning))
  for (const option of extension.options ?? []) command.addOption(toOption(option))
  const text = examples(extension.examples)
  command.addHelpText('after', remarks === undefined ? text : `${text}\n\n${remarks}`)
  for (const [below, one] of Object.entries(commands)) addExtension(command, cli, below, one)
  if (load === undefined) return
  command.action(async () => {
    const { run } = await load()
    await run(callOf(command, cli))
  })
}

const PARSERS = { 'whole number': wholeNumber, duration }

function toOption({ form, meaning, kind, default: value, choices, isRequired = false }: ExtensionOption): Option {
  const option = new Option(form, meaning).makeOptionMandatory(isRequired)
  if (kind !== undefined) option.argParser(PARSERS[kind])
  if (choices !== undefined) option.choices(choices)
  if (value === undefined) return option
  // Commander does not parse defaults, and help shows what users would write.
  return kind === 'duration' ? option.default(duration(String(value)), String(value)) : option.default(value)
}

function callOf(command: Command, { terminal, clock }: Cli): CommandCall {
  const { engine, json } = command.optsWithGlobals<SharedOptions>()
  return {
    arguments: command.args,
    options: omitUndefined(command.opts()),
    engine: command.getOptionValueSourceWithGlobals('engine') === 'default' ? null : engine,
    json: json ?? false,
    who: userName(),
    clock,
    terminal,
    table: (columns, rows) => {
      const cells = rows.map((row) => row.map(printable))
      printTable(terminal, columns, cells)
    },
    facts: (of) => {
      const width = Math.max(...of.map(([name]) => name.length))
      for (const [name, value] of of) {
        terminal.print(`${terminal.paint('dim', name.padEnd(width))}  ${printable(value)}`)
      }
    },
  }
}
