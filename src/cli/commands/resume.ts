import type { Command } from 'commander'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { printable } from '../terminal.ts'
import { userName } from '../who.ts'

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
