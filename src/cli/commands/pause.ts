import type { Command } from 'commander'
import { type Cli, examples, type SharedOptions, userName, withExistingMill } from '../cli.ts'
import { formatDuration } from '../format.ts'
import { printable } from '../terminal.ts'

interface PauseFlags extends SharedOptions {
  readonly reason: string
  readonly who?: string
}

export function addPause(program: Command, cli: Cli): void {
  program
    .command('pause')
    .summary('start no more jobs of a type')
    .description(
      'Start no more jobs of a type, in every worker of every process, within a second. Jobs stay queued, more can be enqueued, and running ones finish.',
    )
    .argument('<type>', 'the type of job')
    .option('--reason <text>', 'why; recorded in the audit', 'paused from the command line')
    .option('--who <name>', 'who does it (default: your user name)')
    .addHelpText(
      'after',
      `${examples([
        ['millrace pause bill --reason "the provider is down"', 'until millrace resume bill'],
        ['millrace explain 01K5X…', 'says whether a job waits for a resume'],
        ['millrace pause bill --presence redis://…', 'on Kafka, whose workers have the same --presence'],
      ])}

Kafka keeps no pauses: there they are kept with the heartbeats of the workers. A worker obeys within about a second: it
fetches nothing more of the topic, so its lag grows. A pause holds for every worker with that --presence, of whatever group.`,
    )
    .action((type: string, _options, command: Command) => pause(cli, type, command.optsWithGlobals<PauseFlags>()))
}

async function pause(cli: Cli, type: string, flags: PauseFlags): Promise<void> {
  const by = { who: flags.who ?? userName(), reason: flags.reason }
  const { paused, first, ready } = await withExistingMill(cli, flags, async (mill) => {
    const done = await mill.pause(type, by)
    const found = (await mill.paused()).find((one) => one.type === type)
    return { paused: done, first: found, ready: (await mill.counts())[type]?.ready ?? 0 }
  })
  if (flags.json) return cli.terminal.print(JSON.stringify({ type, paused, ...by, ready }))
  const name = printable(type)
  if (paused) return cli.terminal.print(`${name} is paused; ${ready} ready`)
  const since = first === undefined ? '' : `, for ${formatDuration(cli.clock.nowMs() - first.sinceMs)}`
  const reason = first === undefined ? '' : ` by ${printable(first.who)}: ${printable(first.reason)}`
  cli.terminal.print(`${name} was paused already${since}${reason}`)
}

export function addResume(program: Command, cli: Cli): void {
  program
    .command('resume')
    .summary('start jobs of a paused type again')
    .description('Start jobs of a paused type again, in every worker of every process, within a second.')
    .argument('<type>', 'the type of job')
    .option('--reason <text>', 'why; recorded in the audit', 'resumed from the command line')
    .option('--who <name>', 'who does it (default: your user name)')
    .addHelpText('after', examples([['millrace resume bill', 'its queued jobs start']]))
    .action((type: string, _options, command: Command) => resume(cli, type, command.optsWithGlobals<PauseFlags>()))
}

async function resume(cli: Cli, type: string, flags: PauseFlags): Promise<void> {
  const by = { who: flags.who ?? userName(), reason: flags.reason }
  const resumed = await withExistingMill(cli, flags, (mill) => mill.resume(type, by))
  if (flags.json) return cli.terminal.print(JSON.stringify({ type, resumed, ...by }))
  cli.terminal.print(resumed ? `${printable(type)} is resumed` : `${printable(type)} was not paused`)
}
