import type { Command } from 'commander'
import { OptionError } from '../../errors.ts'
import { type Cli, examples } from '../cli.ts'
import {
  type ActFlags,
  acting,
  type BulkFlags,
  runBulk,
  toSelection,
  withDesk,
  withFilter,
  withWho,
} from './letters.ts'

export function addDeadDiscard(dead: Command, cli: Cli): void {
  withFilter(withWho(dead.command('discard')))
    .summary('take dead letters off the list')
    .description(
      'Take dead letters off the list. They are kept, and can be brought back with dead undo, until retention.',
    )
    .argument('[ids...]', 'their ids; or give a filter')
    .requiredOption('--reason <text>', 'why; it stays in the audit')
    .option('--all', 'every dead letter')
    .option('--dry-run', 'only say how many it would be')
    .addHelpText(
      'after',
      examples([
        ['millrace dead discard 01K5X… --reason "sent by hand"', 'one letter'],
        ['millrace dead discard --type bill --older-than 30d --reason "too late" --dry-run', 'how many it would be'],
      ]),
    )
    .action(async (ids: string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<BulkFlags>()
      const selection = toSelection(cli, ids, flags)
      await withDesk(cli, flags, (desk) =>
        runBulk(cli, flags, { doing: 'discarding', done: 'discarded', selection }, (options) =>
          desk.discard(selection, acting(flags), options),
        ),
      )
    })
}

export function addDeadUndo(dead: Command, cli: Cli): void {
  withWho(dead.command('undo'))
    .summary('bring discarded letters back')
    .description('Make discarded jobs the dead letters that they were.')
    .argument('<ids...>', 'their ids')
    .option('--reason <text>', 'why; it stays in the audit')
    .addHelpText('after', examples([['millrace dead undo 01K5X…', 'it was discarded by mistake']]))
    .action(async (ids: string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<ActFlags>()
      await withDesk(cli, flags, async (desk) => {
        for (const id of ids) {
          await desk.undo(id, acting(flags))
          cli.terminal.print(flags.json ? JSON.stringify({ id, undone: true }) : `${id} is a dead letter again`)
        }
      })
    })
}

export function addDeadPurge(dead: Command, cli: Cli): void {
  withFilter(withWho(dead.command('purge')))
    .summary('delete dead letters for good')
    .description('Delete dead letters, and discarded ones by their ids, for good. Only the audit remembers them.')
    .argument('[ids...]', 'their ids; or give a filter')
    .requiredOption('--reason <text>', 'why; it stays in the audit')
    .option('--all', 'every dead letter')
    .option('--jobs <modules...>', 'modules that define the types: critical ones are left alone')
    .option('--critical <types...>', 'types to leave alone')
    .option('--dry-run', 'only say how many it would be')
    .option('--force', 'also critical ones')
    .addHelpText(
      'after',
      examples([
        ['millrace dead purge --older-than 90d --reason "retention" --jobs jobs.ts --dry-run', 'how many it would be'],
        ['millrace dead purge 01K5X… --reason "asked to be forgotten" --force', 'one, whatever its type'],
      ]),
    )
    .action(async (ids: string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<BulkFlags>()
      const selection = toSelection(cli, ids, flags)
      if (flags.jobs === undefined && flags.critical === undefined && !flags.force) {
        throw new OptionError(
          'which types are critical is not known; name your modules with --jobs, the types with --critical, or add --force',
        )
      }
      await withDesk(cli, flags, (desk) =>
        runBulk(cli, flags, { doing: 'purging', done: 'purged', selection }, (options) =>
          desk.purge(selection, acting(flags), options),
        ),
      )
    })
}
