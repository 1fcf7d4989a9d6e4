import type { Command } from 'commander'
import type { Mill } from '../../client/mill.ts'
import { publishedDefinition } from '../../engine/definitions.ts'
import { type DefinedLimits, definedText, type LimitOverride, limitsText } from '../../engine/limits.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { concurrencyOrNone, rateOrNone } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, userName, withExistingMill } from '../cli.ts'
import { formatDuration } from '../format.ts'
import { printable, printTable } from '../terminal.ts'

export function addLimits(program: Command, cli: Cli): void {
  const limits = program
    .command('limits')
    .summary('change the concurrency and rate of types while workers run')
    .description(
      'List, set and reset limits of types. They hold instead of those of the definition in every worker of every process, within two seconds and after restarts, until they are reset.',
    )
    .addHelpText(
      'after',
      examples([
        ['millrace limits', 'those that were changed'],
        ['millrace limits set bill --concurrency 5 --rate 10/1s --reason "the bank is slow"', 'until they are reset'],
        ['millrace limits reset bill', 'the definition’s again'],
      ]),
    )
  for (const add of [addList, addSet, addReset]) add(limits, cli)
}

interface ActFlags extends SharedOptions {
  readonly reason: string
  readonly who?: string
}

interface ResetFlags extends ActFlags {
  readonly dryRun?: true
}

interface SetFlags extends ActFlags {
  readonly concurrency?: ReturnType<typeof concurrencyOrNone>
  readonly rate?: ReturnType<typeof rateOrNone>
}

function addList(limits: Command, cli: Cli): void {
  limits
    .command('list', { isDefault: true })
    .summary('list limits that were changed')
    .description(
      'List the types whose limits were changed and not reset, with what their definitions say, who changed them and why.',
    )
    .addHelpText(
      'after',
      examples([
        ['millrace limits', 'all of them'],
        ['millrace limits --json', 'for a script'],
      ]),
    )
    .action(async (_options, command: Command) => {
      const flags = command.optsWithGlobals<SharedOptions>()
      const overrides = await withExistingMill(cli, flags, listed)
      if (flags.json) for (const override of overrides) cli.terminal.print(JSON.stringify(override))
      else if (overrides.length === 0) cli.terminal.print('No limits were changed.')
      else printOverrides(cli, overrides)
    })
}

interface Listed extends LimitOverride {
  /** What the worker that started last has said; null if none has. */
  readonly defined: DefinedLimits | null
}

async function listed({ engine, limits }: Mill): Promise<readonly Listed[]> {
  const overrides = await limits.list()
  return Promise.all(
    overrides.map(async (override) => {
      const facts = engine.records === undefined ? null : await publishedDefinition(engine.records, override.type)
      return {
        ...override,
        defined: facts && { concurrency: facts.concurrency, slots: facts.slots, limit: facts.limit },
      }
    }),
  )
}

function printOverrides({ terminal, clock }: Cli, overrides: readonly Listed[]): void {
  const columns = [
    { title: 'TYPE' },
    { title: 'LIMITS' },
    { title: 'DEFINED' },
    { title: 'FOR', align: 'right' },
    { title: 'WHO' },
    { title: 'REASON' },
  ] as const
  const rows = overrides.map((override) => [
    printable(override.type),
    limitsText(override),
    override.defined === null ? 'not known' : definedText(override.defined),
    formatDuration(Math.max(0, clock.nowMs() - override.sinceMs)),
    printable(override.who),
    printable(override.reason),
  ])
  printTable(terminal, columns, rows)
}

function addSet(limits: Command, cli: Cli): void {
  limits
    .command('set')
    .summary('change the limits of a type')
    .description('Change the limits of a type until they are reset. What is left out stays as it is.')
    .argument('<type>', 'the type of job')
    .option(
      '--concurrency <number>',
      'the most jobs of it at once in one worker, or over all where the definition says so; or none',
      concurrencyOrNone,
    )
    .option('--rate <starts/time>', 'the most starts in a time over all workers, such as 10/1s, or none', rateOrNone)
    .option('--reason <text>', 'why; recorded in the audit', 'changed from the command line')
    .option('--who <name>', 'who does it (default: your user name)')
    .addHelpText(
      'after',
      `${examples([
        ['millrace limits set bill --concurrency 5', 'five at once in each worker'],
        ['millrace limits set bill --rate 100/1m --reason "their new quota"', 'over all workers'],
        ['millrace limits set bill --rate none', 'without a limit, whatever the definition says'],
      ])}

A worker runs no more jobs at once than its own concurrency, whatever is set here. Kafka keeps no such limits.`,
    )
    .action(async (type: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<SetFlags>()
      const by = { who: flags.who ?? userName(), reason: flags.reason }
      const spec = omitUndefined({ concurrency: orNull(flags.concurrency), limit: orNull(flags.rate) })
      const change = await withExistingMill(cli, flags, (mill) => mill.limits.set(type, spec, by))
      if (flags.json) return cli.terminal.print(JSON.stringify({ type, ...change, ...by }))
      const before = limitsText(change.before)
      cli.terminal.print(
        `${printable(type)}: ${limitsText(change.after)}${before === '' ? '' : ` (before: ${before})`}`,
      )
    })
}

function orNull<Value>(given: Value | 'none'): Value | null {
  return given === 'none' ? null : given
}

function addReset(limits: Command, cli: Cli): void {
  limits
    .command('reset')
    .summary('let the limits of the definition hold again')
    .description('Let the limits of the definition hold again, in every worker within two seconds.')
    .argument('<type>', 'the type of job')
    .option('--reason <text>', 'why; recorded in the audit', 'reset from the command line')
    .option('--who <name>', 'who does it (default: your user name)')
    .option('--dry-run', 'only say what would be reset')
    .addHelpText('after', examples([['millrace limits reset bill', 'the definition’s again']]))
    .action(async (type: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<ResetFlags>()
      const by = { who: flags.who ?? userName(), reason: flags.reason }
      const name = printable(type)
      if (flags.dryRun) {
        const kept = await withExistingMill(cli, flags, (mill) => mill.limits.list())
        const override = kept.find((one) => one.type === type) ?? null
        if (flags.json) return cli.terminal.print(JSON.stringify({ type, dryRun: true, override }))
        const would =
          override === null ? `the limits of ${name} were not changed` : `would reset ${name}: ${limitsText(override)}`
        return cli.terminal.print(would)
      }
      const reset = await withExistingMill(cli, flags, (mill) => mill.limits.reset(type, by))
      if (flags.json) return cli.terminal.print(JSON.stringify({ type, reset, ...by }))
      cli.terminal.print(reset ? `${name} has the limits of its definition` : `the limits of ${name} were not changed`)
    })
}
