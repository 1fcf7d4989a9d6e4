import { Command, CommanderError, Option } from 'commander'
import { packageVersion } from '../http/package-info.ts'
import { systemClock } from '../time/clock.ts'
import { type Cli, ENGINE_DEFAULT, examples, type SharedOptions } from './cli.ts'
import { addAudit } from './commands/audit.ts'
import { addCancel } from './commands/cancel.ts'
import { addClean } from './commands/clean.ts'
import { addCompletion } from './commands/completion.ts'
import { addDead } from './commands/dead.ts'
import { addDoctor } from './commands/doctor.ts'
import { addEnqueue } from './commands/enqueue.ts'
import { addExtensions } from './commands/extensions.ts'
import { addHealth } from './commands/health.ts'
import { addExplain, addJob } from './commands/job.ts'
import { addJobs } from './commands/jobs.ts'
import { addKeep } from './commands/keep.ts'
import { addMigrate } from './commands/migrate.ts'
import { addPause, addResume } from './commands/pause.ts'
import { addReap } from './commands/reap.ts'
import { addSchedules } from './commands/schedules.ts'
import { addServe } from './commands/serve.ts'
import { addStart } from './commands/start.ts'
import { addStats } from './commands/stats.ts'
import { addTop } from './commands/top.ts'
import { addWork } from './commands/work.ts'
import { addWorkers } from './commands/workers.ts'
import { EXIT, type ExitCode, report } from './exit.ts'
import type { CliExtensions } from './extensions.ts'
import { systemTerminal, type Terminal } from './terminal.ts'
import { refuseUnknownCommands } from './unknown-command.ts'
import { boundYoungHeap } from './young-heap.ts'

const COMMANDS = [
  addStart,
  addWork,
  addKeep,
  addServe,
  addEnqueue,
  addJobs,
  addJob,
  addExplain,
  addCancel,
  addPause,
  addResume,
  addSchedules,
  addDead,
  addAudit,
  addStats,
  addTop,
  addWorkers,
  addHealth,
  addMigrate,
  addDoctor,
  addReap,
  addClean,
  addExtensions,
  addCompletion,
]

/** Runs one command line and returns the exit code. It neither throws nor exits. */
export async function run(args: readonly string[], terminal: Terminal, extensions: CliExtensions): Promise<ExitCode> {
  const program = buildProgram({ terminal, clock: systemClock, extensions })
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

export function buildProgram(cli: Cli): Command {
  const { terminal } = cli
  const program = new Command('millrace')
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
  for (const add of COMMANDS) add(program, cli)
  refuseUnknownCommands(program)
  return program
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

/** Runs the command line of this process and exits with its code. */
export async function main(extensions: CliExtensions): Promise<never> {
  boundYoungHeap()
  const terminal = systemTerminal()
  const exitCode = await run(process.argv.slice(2), terminal, extensions)
  // A job module may hold open sockets or timers, and a handler may ignore its signal: neither keeps a stopped
  // process alive. What was printed is flushed first.
  await terminal.flush()
  process.exit(exitCode)
}
