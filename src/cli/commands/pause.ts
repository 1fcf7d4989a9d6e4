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
      'Hold a type back, in every worker of every process, within a second. Its jobs stay queued and more may be enqueued; those that run go on to their end.',
    )
    .argument('<type>', 'the type of job')
    .option('--reason <text>', 'why; it stays in the audit', 'paused from the command line')
    .option('--who <name>', 'who; your user name unless told')
    .addHelpText(
      'after',
      examples([
        ['millrace pause bill --reason "the provider is down"', 'until millrace resume bill'],
        ['millrace explain 01K5X…', 'says so when a job waits for a resume'],
      ]),
    )
    .action((type: string, _options, command: Command) => pause(cli, type, command.optsWithGlobals<PauseFlags>()))
}

async function pause(cli: Cli, type: string, flags: PauseFlags): Promise<void> {
  const by = { who: flags.who ?? userName(), reason: flags.reason }
  const { paused, first, ready } = await withExistingMill(cli, flags.engine, async (mill) => {
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

interface ResumeFlags extends SharedOptions {
  readonly reason: string
  readonly who?: string
}

export function addResume(program: Command, cli: Cli): void {
  program
    .command('resume')
    .summary('let a paused type go on')
    .description('Let a paused type go on, in every worker of every process, within a second.')
    .argument('<type>', 'the type of job')
    .option('--reason <text>', 'why; it stays in the audit', 'resumed from the command line')
    .option('--who <name>', 'who; your user name unless told')
    .addHelpText('after', examples([['millrace resume bill', 'its queued jobs start']]))
    .action((type: string, _options, command: Command) => resume(cli, type, command.optsWithGlobals<ResumeFlags>()))
}

async function resume(cli: Cli, type: string, flags: ResumeFlags): Promise<void> {
  const by = { who: flags.who ?? userName(), reason: flags.reason }
  const resumed = await withExistingMill(cli, flags.engine, (mill) => mill.resume(type, by))
  if (flags.json) return cli.terminal.print(JSON.stringify({ type, resumed, ...by }))
  cli.terminal.print(resumed ? `${printable(type)} goes on` : `${printable(type)} was not paused`)
}
