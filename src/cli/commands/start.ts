import { appendFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { type Mill, open } from '../../client/mill.ts'
import { OptionError } from '../../errors.ts'
import type { Log } from '../../job/definition.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { toIso } from '../../time/iso.ts'
import type { Worker } from '../../worker/worker.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { type Deed, loadPreset, type Preset } from '../extensions.ts'
import { loadHandledJobs } from '../modules.ts'
import type { StopRequest } from '../stop-signals.ts'
import { runUntilStopped } from '../until-stopped.ts'
import { runKeeper } from './keep.ts'
import { addServingOptions, type Serve, type Serving, type ServingFlags, serveNothing, startServing } from './serve.ts'
import { addWorkerOptions, runWorker, untilStopped, type WorkerFlags, workerOptions } from './work.ts'

interface StartFlags extends PresetFlags, ServingFlags {
  readonly preset?: string
  /** False for --no-http. */
  readonly http: boolean
}

export function addStart(program: Command, cli: Cli): void {
  const command = program
    .command('start')
    .summary('run your jobs, their schedules, the HTTP API and the dashboard in one process')
    .description(
      'Run everything in one process: a worker for your jobs, the keeper (schedules, reaping, retention), the HTTP API and the dashboard.',
    )
    .argument('[jobs...]', 'modules (.ts, .js, .mjs) that export jobs with handlers; without them no worker runs')
  addServingOptions(addWorkerOptions(command))
    .option('--no-http', 'without the HTTP API and the dashboard')
    .addOption(
      new Option('--preset <name>', 'run a ready-made set of workers instead of your jobs').choices(
        Object.keys(cli.extensions.presets),
      ),
    )
    .option('--record <file>', 'with --preset: a file that gets a line of JSON for each handled job')
    .addHelpText(
      'after',
      `${examples([
        ['millrace start jobs.ts', 'on ./millrace.db, created if missing'],
        ['millrace start jobs.ts --engine sqlite:/var/lib/app/jobs.db', 'on another store'],
        ['millrace start jobs.ts --port 8080', 'the dashboard on another port than 7420'],
        ['millrace start', 'keeper and dashboard, beside your own workers'],
        ['millrace start --preset escrow --engine kafka://127.0.0.1:9092', 'the seven workers of docs/escrow.md'],
      ])}

SIGTERM and SIGINT drain: running jobs get 30 seconds (--drain), the rest goes back to the queue. Then it exits 0.
For access to the dashboard, see: millrace help serve`,
    )
    .action((modules: readonly string[], _options, command: Command) =>
      start(cli, modules, command.optsWithGlobals<StartFlags>()),
    )
}

async function start(cli: Cli, modules: readonly string[], flags: StartFlags): Promise<void> {
  const serve: Serve = flags.http
    ? (mill, jobs, log, watched) => startServing(cli, mill, { jobs, flags, log, ...omitUndefined({ watched }) })
    : serveNothing
  if (flags.preset !== undefined) {
    if (modules.length > 0 || flags.types !== undefined)
      throw new OptionError('--preset brings its own jobs; leave out the modules and --types')
    return runPreset(cli, flags.preset, flags, serve)
  }
  if (flags.record !== undefined) throw new OptionError('--record records what a preset does; add --preset')
  if (modules.length > 0) return runWorker(cli, () => loadHandledJobs(modules, flags.types ?? null), flags, serve)
  if (flags.types !== undefined) throw new OptionError('--types chooses among jobs; name the module that exports them')
  return runKeeper(cli, async () => [], flags, serve)
}

interface PresetFlags extends SharedOptions, WorkerFlags {
  readonly record?: string
}

/** All workers of a preset in this process, until SIGTERM or SIGINT. */
async function runPreset(cli: Cli, name: string, flags: PresetFlags, serve: Serve): Promise<void> {
  const record = (deed: Deed): void => {
    if (flags.record === undefined) return
    appendFileSync(flags.record, `${JSON.stringify({ at: toIso(cli.clock.nowMs()), ...deed })}\n`)
  }
  const load = (): Promise<Preset> => loadPreset(cli.extensions, name)
  await runUntilStopped(cli, load, flags, async ({ stop, log, loaded: preset }) => {
    const mills: Mill[] = []
    let serving: Serving | null = null
    try {
      const workers = await startAll(cli, preset, { flags, log, record, mills, stop })
      const [first] = mills
      if (workers === null || first === undefined) return
      serving = await stop.unlessStopped(serve(first, [], log, preset.watched), (late) => late.close())
      for (const [command, what] of preset.examples(flags.engine)) log.info('To try it', { type: command, shows: what })
      await untilStopped(stop, workers, log)
    } finally {
      await serving?.close()
      await Promise.all(mills.map((mill) => mill.close()))
    }
  })
}

interface Starting {
  readonly flags: PresetFlags
  readonly log: Log
  readonly record: (deed: Deed) => void
  /** Gets every mill that was opened, even if a later one fails. */
  readonly mills: Mill[]
  readonly stop: StopRequest
}

/** Null if a stop comes before all have started. */
async function startAll(cli: Cli, preset: Preset, starting: Starting): Promise<readonly Worker[] | null> {
  const { flags, log, record, mills, stop } = starting
  const workers: Worker[] = []
  for (const { id, engine, jobs } of preset.workers(flags.engine, record)) {
    const mill = await stop.unlessStopped(open(engine, { log, clock: cli.clock }), (late) => late.close())
    if (mill === null) return null
    mills.push(mill)
    if (workers.length === 0) await stop.unlessStopped(preset.prepare(mill))
    const options = { ...workerOptions(flags), id }
    const worker = await stop.unlessStopped(mill.work(jobs, options), (late) => late.stop())
    if (worker === null) return null
    workers.push(worker)
  }
  return workers
}
