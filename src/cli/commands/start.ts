import type { Command } from 'commander'
import { OptionError } from '../../errors.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { loadHandledJobs } from '../modules.ts'
import { runKeeper } from '../run-keeper.ts'
import { addWorkerOptions, runWorker, type WorkerFlags } from '../run-worker.ts'

export function addStart(program: Command, cli: Cli): void {
  addWorkerOptions(
    program
      .command('start')
      .summary('run your jobs and their schedules, and reap dead workers, in one process')
      .description('Everything in one process: a worker for your jobs, and the keeper: schedules, reaping, tidying up.')
      .argument('[jobs...]', 'modules (.ts, .js, .mjs) that export jobs with handlers; none: the keeper alone'),
  )
    .addHelpText(
      'after',
      `${examples([
        ['millrace start jobs.ts', 'on ./millrace.db, which is created if it is not there'],
        ['millrace start jobs.ts --engine sqlite:/var/lib/app/jobs.db', 'somewhere else'],
        ['millrace start', 'only the keeper, beside workers of your own'],
      ])}

SIGTERM and SIGINT drain: running jobs get 30 seconds (--drain), the rest goes back to the queue; exit 0.
The HTTP API and the dashboard will be part of this command; they are not in this version.`,
    )
    .action((modules: readonly string[], _options, command: Command) =>
      start(cli, modules, command.optsWithGlobals<SharedOptions & WorkerFlags>()),
    )
}

async function start(cli: Cli, modules: readonly string[], flags: SharedOptions & WorkerFlags): Promise<void> {
  if (modules.length > 0) return runWorker(cli, await loadHandledJobs(modules, flags.types ?? null), flags)
  if (flags.types !== undefined) throw new OptionError(`--types chooses among jobs; name the module that exports them`)
  return runKeeper(cli, [], flags)
}
