import type { Command } from 'commander'
import { OptionError, PayloadError } from '../../errors.ts'
import { type Cli, examples, wholeNumber } from '../cli.ts'
import { type ActFlags, acting, type BulkFlags, runBulk, toFilter, withDesk, withFilter, withWho } from './letters.ts'

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
