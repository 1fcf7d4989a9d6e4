/** `--preset` of `start`, `serve` and `work`: a preset's workers, what serves them, or both, until SIGTERM or SIGINT. */
import { appendFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { type Mill, open } from '../../client/mill.ts'
import { openPresence } from '../../engine/open.ts'
import { OptionError } from '../../errors.ts'
import type { Log } from '../../job/definition.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { startDuties } from '../../keeper/side-duties.ts'
import type { Clock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import type { WorkerOptions } from '../../worker/options.ts'
import type { Worker } from '../../worker/worker.ts'
import { wholeNumber } from '../arguments.ts'
import type { Cli, SharedOptions } from '../cli.ts'
import {
  type Deed,
  type ListedPreset,
  namesOf,
  type OpenPreset,
  type Preset,
  presetLines,
  presetNamed,
} from '../extensions.ts'
import { loadHandledJobs } from '../modules.ts'
import type { StopRequest } from '../stop-signals.ts'
import { type LogLevel, runUntilStopped } from '../until-stopped.ts'
import type { Serve } from './serve.ts'
import { untilStopped } from './work.ts'

export interface PresetFlags extends SharedOptions {
  /** True without a name. */
  readonly preset?: string | true
  readonly engineIsGiven: boolean
  readonly config?: string
  readonly record?: string
  readonly instance?: number
  readonly logLevel: LogLevel
}

export function addPresetOptions(command: Command, { extensions }: Cli): Command {
  return command
    .addOption(
      new Option('--preset [name]', 'run a ready-made set of workers; without a name: list them')
        .choices(Object.keys(extensions.presets))
        // Refused when it is loaded, with the name that was probably meant.
        .argParser(String),
    )
    .option('--config <file>', 'with --preset: its configuration, as JSON')
    .option('--record <file>', 'with --preset escrow: a file that gets a line of JSON for each handled job')
    .option('--instance <n>', 'with --preset escrow: the number in the names of its workers (default: 1)', wholeNumber)
}

/** The flags of a command with these options. */
export function presetFlags<Flags extends PresetFlags>(command: Command): Flags {
  const engineIsGiven = command.getOptionValueSourceWithGlobals('engine') !== 'default'
  return { ...command.optsWithGlobals<Flags>(), engineIsGiven }
}

/** For a command without --preset. */
export function refusePresetFlags({ record, config, instance }: PresetFlags): void {
  if (record !== undefined) throw new OptionError('--record records what a preset does; add --preset')
  if (config !== undefined) throw new OptionError('--config configures a preset; add --preset')
  if (instance !== undefined) throw new OptionError('--instance numbers the workers of a preset; add --preset')
}

/** What a command runs of a preset. */
interface PresetRun<Flags> {
  /** Modules with jobs of the user, for a preset that takes them. */
  readonly modules: readonly string[]
  /** Null: its workers run in other processes. */
  readonly worker: WorkerOptions | null
  /** `flags` have the engine that the preset runs on. */
  serve(flags: Flags): Serve
}

/** `name` is true for --preset alone, which asks what there is. */
export async function runPreset<Flags extends PresetFlags>(
  cli: Cli,
  name: string | true,
  given: Flags,
  run: PresetRun<Flags>,
): Promise<void> {
  const { engineDefault, load: loadPreset } = listed(cli, name, given)
  const { modules } = run
  const load = async () => {
    const { preset } = await loadPreset()
    refuseForeign(String(name), preset, modules, given)
    return { preset, jobs: modules.length === 0 ? [] : await loadHandledJobs(modules, null) }
  }
  await runUntilStopped(cli, load, given, async ({ stop, log, loaded: { preset, jobs } }) => {
    const engine = given.engineIsGiven ? given.engine : (engineDefault ?? given.engine)
    const flags = { ...given, engine }
    const record = recorder(cli.clock, flags.record)
    const { config = null, instance = 1 } = flags
    const opening = preset.open({ engine, config, instance, record, jobs, log, clock: cli.clock })
    const opened = await stop.unlessStopped(opening, (late) => late.close?.())
    if (opened === null) return
    await using ends = new AsyncDisposableStack()
    ends.defer(async () => opened.close?.())
    await runOpened(cli, opened, { flags, serve: run.serve(flags), worker: run.worker, log, stop, ends })
  })
}

/** A missing name, or one that does not exist, is answered with what there is. */
function listed({ extensions, terminal }: Cli, name: string | true, { json }: PresetFlags): ListedPreset {
  const isKnown = name !== true && Object.hasOwn(extensions.presets, name)
  if (!isKnown && json !== true) for (const line of presetLines(extensions)) terminal.complain(line)
  if (name === true) throw new OptionError(`--preset needs a name; there are ${namesOf(extensions.presets)}`)
  return presetNamed(extensions, name)
}

function refuseForeign(name: string, { takes }: Preset, modules: readonly string[], flags: PresetFlags): void {
  if (modules.length > 0 && !takes.includes('jobs'))
    throw new OptionError(`the preset '${name}' brings its own jobs; leave out the modules`)
  for (const option of ['config', 'record', 'instance'] as const) {
    if (flags[option] === undefined || takes.includes(option)) continue
    throw new OptionError(`the preset '${name}' does not take --${option}; leave it out`)
  }
}

function recorder(clock: Clock, file: string | undefined): (deed: Deed) => void {
  if (file === undefined) return () => {}
  return (deed) => appendFileSync(file, `${JSON.stringify({ at: toIso(clock.nowMs()), ...deed })}\n`)
}

interface Running {
  readonly flags: PresetFlags
  readonly serve: Serve
  readonly worker: WorkerOptions | null
  readonly log: Log
  readonly stop: StopRequest
  /** Ends what was started, the last first, even if something later fails to start. */
  readonly ends: AsyncDisposableStack
}

async function runOpened(cli: Cli, opened: OpenPreset, running: Running): Promise<void> {
  const { serve, worker, log, stop, ends } = running
  const mills = await openMills(cli, opened, running)
  const [first, ...others] = mills
  if (first === undefined || stop.signal.aborted) return
  // Who only looks creates nothing.
  if (worker !== null) await stop.unlessStopped(opened.prepare?.(first) ?? Promise.resolve())
  if (stop.signal.aborted) return
  const jobs = opened.workers.flatMap((each) => each.jobs)
  const worked = opened.workers.map((each) => each.jobs.map(({ type }) => type))
  const serving = await stop.unlessStopped(serve(first, { ...opened, jobs, log, others, worked }), (late) =>
    late.close(),
  )
  if (serving === null) return
  ends.defer(() => serving.close())
  if (worker === null) await stop.unlessStopped(new Promise(() => {}))
  else await workUntilStopped(cli, opened, { ...running, mills, worker })
}

async function workUntilStopped(
  cli: Cli,
  opened: OpenPreset,
  {
    mills,
    worker: given,
    log,
    stop,
    ends,
  }: Running & { readonly mills: readonly Mill[]; readonly worker: WorkerOptions },
): Promise<void> {
  const workers: Worker[] = []
  for (const [index, mill] of mills.entries()) {
    const { jobs = [], options, id, name } = opened.workers[index] ?? {}
    const starting = mill.work(jobs, { ...options, ...given, ...omitUndefined({ id, name }) })
    const worker = await stop.unlessStopped(starting, (late) => late.stop())
    if (worker === null) return
    workers.push(worker)
  }
  ends.defer(startDuties(opened.duties ?? [], { clock: cli.clock, log }))
  for (const [command, what] of opened.examples) log.info('To try it', { type: command, shows: what })
  await untilStopped(stop, workers, log)
}

/** One for each worker; fewer if a stop comes meanwhile. */
async function openMills(cli: Cli, opened: OpenPreset, { flags, log, stop, ends }: Running): Promise<readonly Mill[]> {
  // One for all of them, so that what observes them reads it once.
  const presence = flags.presence === undefined ? undefined : await openPresence(flags.presence)
  if (presence !== undefined) ends.defer(() => presence.close())
  const mills: Mill[] = []
  ends.defer(async () => void (await Promise.all(mills.map((mill) => mill.close()))))
  const options = { log, clock: cli.clock, ...omitUndefined({ presence, alerter: opened.alerter }) }
  for (const { engine } of opened.workers) {
    const mill = await stop.unlessStopped(open(engine, options), (late) => late.close())
    if (mill === null) break
    mills.push(mill)
  }
  return mills
}
