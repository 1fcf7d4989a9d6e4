import { Command, CommanderError, Option } from 'commander'
import { packageVersion } from '../engine/package-info.ts'
import { systemClock } from '../time/clock.ts'
import { type Cli, ENGINE_DEFAULT, examples, type SharedOptions } from './cli.ts'
import { commandIn, loadCommands } from './command-list.ts'
import { EXIT, type ExitCode, report } from './exit.ts'
import type { CliExtensions } from './extensions.ts'
import { systemTerminal, type Terminal } from './terminal.ts'
import { refuseUnknownCommands } from './unknown-command.ts'

/** Runs one command line and returns the exit code. It neither throws nor exits. */
export async function run(args: readonly string[], terminal: Terminal, extensions: CliExtensions): Promise<ExitCode> {
  const program = await buildProgram({ terminal, clock: systemClock, extensions }, args)
  program.on('option:version', () => {
    const version = packageVersion()
    terminal.print(args.includes('--json') ? JSON.stringify({ version }) : version)
    throw new CommanderError(EXIT.done, 'commander.version', version)
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    return terminal.lostReader ? EXIT.failed : EXIT.done
  } catch (error) {
    return report(error, terminal, program.opts<SharedOptions>())
  }
}

/** With every command, or only with the one that the words of a command line call. */
export async function buildProgram(cli: Cli, args: readonly string[] = []): Promise<Command> {
  const program = emptyProgram(cli)
  for (const add of await loadCommands(cli, commandIn(args, program))) add(program, cli)
  refuseUnknownCommands(program)
  return program
}

function emptyProgram({ terminal }: Cli): Command {
  return (
    new Command('millrace')
      .description('Durable background jobs: run, watch and repair them on SQLite, Postgres, Redis or Kafka.')
      .option('--version', 'print the version')
      .addOption(new Option('--engine <url>', 'where the jobs are').env('MILLRACE_ENGINE').default(ENGINE_DEFAULT))
      .addOption(
        new Option('--presence <url>', 'where heartbeats of workers are kept, if not with the jobs').env(
          'MILLRACE_PRESENCE',
        ),
      )
      .option('--json', 'print one JSON object per line')
      .option('--debug', 'print stacks with errors')
      .helpOption('-h, --help', 'show this help')
      .helpCommand('help [command]', 'show the help of a command')
      .configureHelp({ showGlobalOptions: true, styleTitle: (title) => terminal.paint('bold', title) })
      // exit.ts prints all errors.
      .configureOutput({
        outputError: () => {},
        writeOut: (text) => terminal.print(text.trimEnd()),
        writeErr: (text) => terminal.complain(text.trimEnd()),
        getOutHelpWidth: () => terminal.columns ?? HELP_COLUMNS,
      })
      .exitOverride()
      .addHelpText('after', HELP)
  )
}

/** For help that is piped into a pager. */
const HELP_COLUMNS = 100

const HELP = `${examples([
  ['millrace start jobs.ts', 'run the jobs that jobs.ts exports, on ./millrace.db'],
  [`millrace enqueue greet '{"name":"Ada"}'`, 'add a job'],
  ['millrace jobs --status dead_letter', 'jobs that failed for good'],
  ['millrace job 01K5X…', 'everything about one job'],
])}

Exit codes:
  0  done
  1  failed: an unknown id, a job that has already finished, a store that cannot be opened or read,
     a worker that lost the reader of its log
  2  wrong usage: the command line, or a file it names, has to change`

/** Runs a command line, by default that of this process, and exits with its code. */
export async function main(extensions: CliExtensions, args: readonly string[] = process.argv.slice(2)): Promise<never> {
  const terminal = systemTerminal()
  const exitCode = await run(args, terminal, extensions)
  // A job module may hold open sockets or timers, and a handler may ignore its signal: neither keeps a stopped
  // process alive. What was printed is flushed first.
  await terminal.flush()
  process.exit(exitCode)
}
