import type { Command } from 'commander'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { loadHandledJobs } from '../modules.ts'
import { addWorkerOptions, runWorker, type WorkerFlags } from '../run-worker.ts'

export function addWork(program: Command, cli: Cli): void {
  addWorkerOptions(
    program
      .command('work')
      .summary('run jobs until told to stop')
      .description('Run jobs until SIGTERM or SIGINT: then finish or give back what runs, and exit 0.')
      .argument('<jobs...>', 'modules (.ts, .js, .mjs) that export jobs with handlers'),
  )
    .addHelpText(
      'after',
      examples([
        ['millrace work jobs.ts', 'every job that jobs.ts exports'],
        ['millrace work jobs/*.ts --concurrency 50', 'more at once'],
        ['millrace work jobs.ts --types greet,bill', 'only some of them: another process has the rest'],
        ['millrace work jobs.ts --drain 5s', 'wait less for running jobs when stopped'],
      ]),
    )
    .action(async (modules: readonly string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<SharedOptions & WorkerFlags>()
      await runWorker(cli, () => loadHandledJobs(modules, flags.types ?? null), flags)
    })
}
