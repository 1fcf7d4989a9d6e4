import type { Command } from 'commander'
import { OptionError } from '../../errors.ts'
import { parsePayload, wholeNumber } from '../arguments.ts'
import { type Cli, examples } from '../cli.ts'
import {
  type ActFlags,
  acting,
  type BulkFlags,
  runBulk,
  toFilter,
  toSelection,
  withDesk,
  withFilter,
  withWho,
} from './letters.ts'

export function addDeadDiscard(dead: Command, cli: Cli): void {
  withFilter(withWho(dead.command('discard')))
    .summary('take dead letters off the list')
    .description('Take dead letters off the list. Until retention removes them, dead undo brings them back.')
    .argument('[ids...]', 'their ids; or give a filter')
    .requiredOption('--reason <text>', 'why; recorded in the audit')
    .option('--all', 'every dead letter')
    .option('--dry-run', 'only count them')
    .addHelpText(
      'after',
      examples([
        ['millrace dead discard 01K5X… --reason "sent by hand"', 'one letter'],
        [
          'millrace dead discard --type bill --older-than 30d --reason "too late" --dry-run',
          'count the matching letters',
        ],
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
    .description('Turn discarded jobs back into dead letters.')
    .argument('<ids...>', 'their ids')
    .option('--reason <text>', 'why; recorded in the audit')
    .addHelpText('after', examples([['millrace dead undo 01K5X…', 'after a mistaken discard']]))
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
    .summary('delete dead letters permanently')
    .description('Delete dead letters, or discarded ones by id, permanently. Only the audit keeps a trace.')
    .argument('[ids...]', 'their ids; or give a filter')
    .requiredOption('--reason <text>', 'why; recorded in the audit')
    .option('--all', 'every dead letter')
    .option('--jobs <modules...>', 'modules that define the types, to keep critical ones')
    .option('--critical <types...>', 'types to keep')
    .option('--dry-run', 'only count them')
    .option('--force', 'purge critical ones too')
    .addHelpText(
      'after',
      examples([
        [
          'millrace dead purge --older-than 90d --reason "retention" --jobs jobs.ts --dry-run',
          'count the matching letters',
        ],
        ['millrace dead purge 01K5X… --reason "asked to be forgotten" --force', 'one, of any type'],
      ]),
    )
    .action(async (ids: string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<BulkFlags>()
      const selection = toSelection(cli, ids, flags)
      if (flags.jobs === undefined && flags.critical === undefined && !flags.force) {
        throw new OptionError(
          'the critical types are unknown; name your modules with --jobs, the types with --critical, or add --force',
        )
      }
      await withDesk(cli, flags, (desk) =>
        runBulk(cli, flags, { doing: 'purging', done: 'purged', selection }, (options) =>
          desk.purge(selection, acting(flags), options),
        ),
      )
    })
}

export function addDeadErase(dead: Command, cli: Cli): void {
  withFilter(withWho(dead.command('erase')))
    .summary('erase jobs and all that is known of them')
    .description(
      'Erase dead letters, or by id any job that is over or gone: payload, result, error, history, and what the audit says of them. The audit keeps who, when and why.',
    )
    .argument('[ids...]', 'ids of jobs; or give a filter of dead letters')
    .requiredOption('--reason <text>', 'why; recorded in the audit')
    .option('--all', 'every dead letter')
    .option('--jobs <modules...>', 'modules that define the types, to keep critical dead letters')
    .option('--critical <types...>', 'types whose dead letters are kept')
    .option('--dry-run', 'only count them')
    .option('--force', 'erase critical ones too')
    .addHelpText(
      'after',
      examples([
        ['millrace dead erase 01K5X… --reason "request 4711"', 'one job, dead, completed or purged'],
        [
          'millrace dead erase --type bill --older-than 1y --reason "request 4711" --dry-run',
          'count the matching letters',
        ],
      ]),
    )
    .action(async (ids: string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<BulkFlags>()
      const selection = toSelection(cli, ids, flags)
      await withDesk(cli, flags, (desk) =>
        runBulk(cli, flags, { doing: 'erasing', done: 'erased', selection }, (options) =>
          desk.erase(selection, acting(flags), options),
        ),
      )
    })
}

interface ReplayFlags extends ActFlags {
  readonly payload?: string
  readonly force?: true
}

const MAX_REPLAYS = ['--max-replays <n>', 'skip letters that were replayed this often (default: 3)'] as const

export function addDeadReplay(dead: Command, cli: Cli): void {
  withWho(dead.command('replay'))
    .summary('put dead letters back into the queue')
    .description('Put dead letters back into the queue, with their options and all attempts.')
    .argument('<ids...>', 'their ids, as printed by dead list')
    .option('--reason <text>', 'why; recorded in the audit')
    .option('--payload <json>', 'use this payload instead; for one id only')
    .option('--jobs <modules...>', 'modules that define the type, to check the payload')
    .option('--force', 'replay letters over the limit too')
    .option(...MAX_REPLAYS, wholeNumber)
    .addHelpText(
      'after',
      examples([
        ['millrace dead replay 01K5X…', 'run it again'],
        [`millrace dead replay 01K5X… --payload '{"id":42}' --jobs jobs.ts`, 'with a corrected payload'],
      ]),
    )
    .action((ids: string[], _options, command: Command) => replay(cli, ids, command.optsWithGlobals<ReplayFlags>()))
}

async function replay(cli: Cli, ids: readonly string[], flags: ReplayFlags): Promise<void> {
  if (flags.payload !== undefined && ids.length > 1) throw new OptionError('--payload is for one letter; give one id')
  const edit = flags.payload === undefined ? {} : { payload: parsePayload(flags.payload) }
  await withDesk(cli, flags, async (desk) => {
    for (const id of ids) {
      await desk.replay(id, acting(flags), { ...edit, force: flags.force ?? false })
      cli.terminal.print(flags.json ? JSON.stringify({ id, replayed: true }) : `${id} replayed`)
    }
  })
}

export function addDeadReplayAll(dead: Command, cli: Cli): void {
  withFilter(withWho(dead.command('replay-all')))
    .summary('put all or filtered dead letters back into the queue')
    .description(
      'Put all or filtered dead letters back into the queue. Ctrl-C stops it; repeat the command to continue.',
    )
    .option('--reason <text>', 'why; recorded in the audit')
    .option('--rate <n>', 'at most this many per second', wholeNumber)
    .option('--dry-run', 'only count them')
    .option('--force', 'replay letters over the limit too')
    .option(...MAX_REPLAYS, wholeNumber)
    .addHelpText(
      'after',
      examples([
        ['millrace dead replay-all --dry-run', 'count the dead letters'],
        ['millrace dead replay-all --type bill --rate 50', 'one type, slowly'],
        ['millrace dead replay-all --error 3f2a9c0d11e4 --reason "the mail server is back"', 'one cause'],
        ['millrace dead replay-all --max-replays 1', 'only letters that were never replayed'],
      ]),
    )
    .action(async (_options, command: Command) => {
      const flags = command.optsWithGlobals<BulkFlags>()
      const selection = toFilter(cli, flags)
      await withDesk(cli, flags, (desk) =>
        runBulk(cli, flags, { doing: 'replaying', done: 'replayed', selection }, (options) =>
          desk.replayAll(selection, acting(flags), options),
        ),
      )
    })
}
