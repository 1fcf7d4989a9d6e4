import { type Command, Option } from 'commander'
import { OptionError } from '../../errors.ts'
import { type Cli, examples } from '../cli.ts'
import { loadHandledJobs } from '../modules.ts'
import { runKeeper } from '../run-keeper.ts'
import { type PresetFlags, runPreset } from '../run-preset.ts'
import { addWorkerOptions, runWorker } from '../run-worker.ts'
import { addServingOptions, type Serve, type ServingFlags, serveNothing, startServing } from '../serving.ts'

interface StartFlags extends PresetFlags, ServingFlags {
  readonly preset?: string
  /** False for --no-http. */
  readonly http: boolean
  readonly json?: true
}

export function addStart(program: Command, cli: Cli): void {
  const command = program
    .command('start')
    .summary('run your jobs, their schedules, the HTTP API and the dashboard in one process')
    .description(
      'Everything in one process: a worker for your jobs, the keeper (schedules, reaping, tidying up), the HTTP API and the dashboard.',
    )
    .argument('[jobs...]', 'modules (.ts, .js, .mjs) that export jobs with handlers; none: no worker')
  addServingOptions(addWorkerOptions(command))
    .option('--no-http', 'without the HTTP API and the dashboard')
    .addOption(
      new Option('--preset <name>', 'workers to try instead of your own').choices(Object.keys(cli.extensions.presets)),
    )
    .option('--record <file>', 'with --preset: a line of JSON for everything that a handler did')
    .addHelpText(
      'after',
      `${examples([
        ['millrace start jobs.ts', 'on ./millrace.db, which is created if it is not there'],
        ['millrace start jobs.ts --engine sqlite:/var/lib/app/jobs.db', 'somewhere else'],
        ['millrace start jobs.ts --port 8080', 'the dashboard elsewhere than at http://127.0.0.1:7420'],
        ['millrace start', 'keeper and dashboard, beside workers of your own'],
        ['millrace start --preset escrow --engine kafka://127.0.0.1:9092', 'the seven workers of docs/escrow.md'],
      ])}

SIGTERM and SIGINT drain: running jobs get 30 seconds (--drain), the rest goes back to the queue; exit 0.
Who may open the dashboard is told by: millrace help serve`,
    )
    .action((modules: readonly string[], _options, command: Command) =>
      start(cli, modules, command.optsWithGlobals<StartFlags>()),
    )
}

async function start(cli: Cli, modules: readonly string[], flags: StartFlags): Promise<void> {
  const serve: Serve = flags.http
    ? (mill, jobs, log, watched) => startServing(cli, mill, { jobs, flags, log, ...(watched && { watched }) })
    : serveNothing
  if (flags.preset !== undefined) {
    if (modules.length > 0 || flags.types !== undefined)
      throw new OptionError('--preset brings its own jobs; leave out the modules and --types')
    return runPreset(cli, flags.preset, flags, serve)
  }
  if (flags.record !== undefined) throw new OptionError('--record is what a preset did; add --preset')
  if (modules.length > 0) return runWorker(cli, () => loadHandledJobs(modules, flags.types ?? null), flags, serve)
  if (flags.types !== undefined) throw new OptionError(`--types chooses among jobs; name the module that exports them`)
  return runKeeper(cli, async () => [], flags, serve)
}
