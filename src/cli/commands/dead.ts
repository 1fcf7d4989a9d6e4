import type { Command } from 'commander'
import { type Cli, examples } from '../cli.ts'
import { addDeadDiscard, addDeadPurge, addDeadUndo } from '../dead/discard.ts'
import { addDeadList, addDeadShow } from '../dead/list.ts'
import { addDeadReplay, addDeadReplayAll } from '../dead/replay.ts'

/** The dead-letter desk. */
export function addDead(program: Command, cli: Cli): void {
  const dead = program
    .command('dead')
    .summary('look at dead letters, replay, discard or purge them')
    .description('Look at dead letters and decide about them. Every act is audited: see millrace audit.')
    .addHelpText(
      'after',
      examples([
        ['millrace dead list --groups', 'what goes wrong, and how often'],
        ['millrace dead replay 01K5X…', 'run one again'],
        ['millrace dead replay-all --type bill --dry-run', 'how many a replay would be'],
        ['millrace dead discard 01K5X… --reason "sent by hand"', 'take one off the list'],
      ]),
    )
  const commands = [
    addDeadList,
    addDeadShow,
    addDeadReplay,
    addDeadReplayAll,
    addDeadDiscard,
    addDeadUndo,
    addDeadPurge,
  ]
  for (const add of commands) add(dead, cli)
}
