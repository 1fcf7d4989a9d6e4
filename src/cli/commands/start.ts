import { appendFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { type Mill, open } from '../../client/mill.ts'
import { OptionError } from '../../errors.ts'
import type { Log } from '../../job/definition.ts'
import { toIso } from '../../time/iso.ts'
import type { Worker } from '../../worker/worker.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { type Deed, loadPreset, type Preset } from '../extensions.ts'
import { loadHandledJobs } from '../modules.ts'
import { StopRequest } from '../stop-signals.ts'
import { openLog } from '../until-stopped.ts'
import { runKeeper } from './keep.ts'
import { addServingOptions, type Serve, type Serving, type ServingFlags, serveNothing, startServing } from './serve.ts'
import { addWorkerOptions, runWorker, untilStopped, type WorkerFlags, workerOptions } from './work.ts'

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

export interface PresetFlags extends SharedOptions, WorkerFlags {
  /** A file that gets a line of JSON for everything a handler did. */
  readonly record?: string
}

/** All workers of a preset in this process, until SIGTERM or SIGINT. */
export async function runPreset(cli: Cli, name: string, flags: PresetFlags, serve: Serve): Promise<void> {
  const stop = new StopRequest(cli.clock)
  cli.terminal.outliveReader()
  const log = openLog(cli.terminal, cli.clock, { json: flags.json, level: flags.logLevel })
  const { record } = flags
  const note = (deed: Deed): void => {
    if (record === undefined) return
    appendFileSync(record, `${JSON.stringify({ at: toIso(cli.clock.nowMs()), ...deed })}\n`)
  }
  const mills: Mill[] = []
  let serving: Serving | null = null
  try {
    const preset = await stop.unlessStopped(loadPreset(cli.extensions, name))
    if (preset === null) return
    const workers = await startAll(cli, preset, { flags, log, note, mills, stop })
    const [first] = mills
    if (workers === null || first === undefined) return
    serving = await stop.unlessStopped(serve(first, [], log, preset.watched), (late) => late.close())
    for (const [command, what] of preset.examples(flags.engine)) log.info('To try it', { type: command, shows: what })
    await untilStopped(stop, workers, log)
  } finally {
    await serving?.close()
    await Promise.all(mills.map((mill) => mill.close()))
    stop.close()
  }
}

interface Starting {
  readonly flags: PresetFlags
  readonly log: Log
  readonly note: (deed: Deed) => void
  /** What was opened, also if a later one fails. */
  readonly mills: Mill[]
  readonly stop: StopRequest
}

/** Null if it is to stop before all have started. */
async function startAll(cli: Cli, preset: Preset, starting: Starting): Promise<readonly Worker[] | null> {
  const { flags, log, note, mills, stop } = starting
  const workers: Worker[] = []
  for (const { id, engine, jobs } of preset.workers(flags.engine, note)) {
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
