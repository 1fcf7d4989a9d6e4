import type { Command } from 'commander'
import { OptionError, PayloadError } from '../../errors.ts'
import { wholeNumber } from '../arguments.ts'
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

interface ReplayFlags extends ActFlags {
  readonly payload?: string
  readonly force?: true
}

const MAX_REPLAYS = ['--max-replays <n>', 'leave alone what was replayed this often already (default: 3)'] as const

export function addDeadReplay(dead: Command, cli: Cli): void {
  withWho(dead.command('replay'))
    .summary('put dead letters back into the queue')
    .description('Put dead letters back into the queue: the same jobs, with all their options and no attempts used.')
    .argument('<ids...>', 'their ids, as dead list prints them')
    .option('--reason <text>', 'why; it stays in the audit')
    .option('--payload <json>', 'run it with this payload instead; for one id')
    .option('--jobs <modules...>', 'modules that define the type: the payload must fit its schema')
    .option('--force', 'also what was replayed too often')
    .option(...MAX_REPLAYS, wholeNumber)
    .addHelpText(
      'after',
      examples([
        ['millrace dead replay 01K5X…', 'run it again'],
        [`millrace dead replay 01K5X… --payload '{"id":42}' --jobs jobs.ts`, 'with a payload that is mended'],
      ]),
    )
    .action((ids: string[], _options, command: Command) => replay(cli, ids, command.optsWithGlobals<ReplayFlags>()))
}

async function replay(cli: Cli, ids: readonly string[], flags: ReplayFlags): Promise<void> {
  if (flags.payload !== undefined && ids.length > 1) throw new OptionError('--payload is for one letter; give one id')
  const edit = flags.payload === undefined ? {} : { payload: parse(flags.payload) }
  await withDesk(cli, flags, async (desk) => {
    for (const id of ids) {
      await desk.replay(id, acting(flags), { ...edit, force: flags.force ?? false })
      cli.terminal.print(flags.json ? JSON.stringify({ id, replayed: true }) : `${id} replayed`)
    }
  })
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw new PayloadError('ERR_PAYLOAD_NOT_JSON', 'the payload is not JSON; quote it for your shell', { cause: error })
  }
}

export function addDeadReplayAll(dead: Command, cli: Cli): void {
  withFilter(withWho(dead.command('replay-all')))
    .summary('put all dead letters, or those of a filter, back into the queue')
    .description(
      'Put all dead letters, or those of a filter, back into the queue. Ctrl-C stops it; the same command goes on.',
    )
    .option('--reason <text>', 'why; it stays in the audit')
    .option('--rate <n>', 'how many per second at most', wholeNumber)
    .option('--dry-run', 'only say how many it would be')
    .option('--force', 'also what was replayed too often')
    .option(...MAX_REPLAYS, wholeNumber)
    .addHelpText(
      'after',
      examples([
        ['millrace dead replay-all --dry-run', 'how many there are'],
        ['millrace dead replay-all --type bill --rate 50', 'one type, gently'],
        ['millrace dead replay-all --error 3f2a9c0d11e4 --reason "the mail server is back"', 'one cause'],
        ['millrace dead replay-all --max-replays 1', 'only what was never replayed before'],
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
