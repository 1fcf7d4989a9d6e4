/** `millrace start --preset`: all workers and duties of a preset in one process, until SIGTERM or SIGINT. */
import { appendFileSync } from 'node:fs'
import { type Mill, open } from '../../client/mill.ts'
import { openPresence } from '../../engine/open.ts'
import { OptionError } from '../../errors.ts'
import type { Log } from '../../job/definition.ts'
import { errorText } from '../../job/error-record.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { Clock } from '../../time/clock.ts'
import { parseDurationMs } from '../../time/duration.ts'
import { toIso } from '../../time/iso.ts'
import type { Worker } from '../../worker/worker.ts'
import type { Cli, SharedOptions } from '../cli.ts'
import { type Deed, loadPreset, type OpenPreset, type Preset, type PresetDuty } from '../extensions.ts'
import type { StopRequest } from '../stop-signals.ts'
import { runUntilStopped } from '../until-stopped.ts'
import { type ServingFlags, startServing } from './serve.ts'
import { untilStopped, type WorkerFlags, workerOptions } from './work.ts'

export interface PresetFlags extends SharedOptions, WorkerFlags, ServingFlags {
  readonly engineIsGiven: boolean
  /** False for --no-http. */
  readonly http: boolean
  readonly config?: string
  readonly record?: string
}

export async function runPreset(cli: Cli, name: string, given: PresetFlags): Promise<void> {
  const load = (): Promise<Preset> => loadPreset(cli.extensions, name)
  await runUntilStopped(cli, load, given, async ({ stop, log, loaded: preset }) => {
    refuseForeignFlags(name, preset, given)
    const engine = given.engineIsGiven ? given.engine : (preset.engineDefault ?? given.engine)
    const flags = { ...given, engine }
    const record = recorder(cli.clock, flags.record)
    const { config = null } = flags
    const opening = preset.open({ engine, config, record, log, clock: cli.clock })
    const opened = await stop.unlessStopped(opening, (late) => late.close?.())
    if (opened === null) return
    await using ends = new AsyncDisposableStack()
    ends.defer(async () => opened.close?.())
    await runOpened(cli, opened, { flags, log, stop, ends })
  })
}

function refuseForeignFlags(name: string, { takes }: Preset, flags: PresetFlags): void {
  for (const option of ['config', 'record'] as const) {
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
  readonly log: Log
  readonly stop: StopRequest
  /** Ends what was started, the last first, even if something later fails to start. */
  readonly ends: AsyncDisposableStack
}

async function runOpened(cli: Cli, opened: OpenPreset, { flags, log, stop, ends }: Running): Promise<void> {
  const mills = await openMills(cli, opened, { flags, log, stop, ends })
  const [first, ...others] = mills
  if (first === undefined || stop.signal.aborted) return
  await stop.unlessStopped(opened.prepare?.(first) ?? Promise.resolve())
  if (flags.http && !stop.signal.aborted) {
    const jobs = opened.workers.flatMap((worker) => worker.jobs)
    const { watched, alertRules, instruments, pages } = opened
    const starting = startServing(cli, first, { jobs, flags, log, others, watched, alertRules, instruments, pages })
    const serving = await stop.unlessStopped(starting, (late) => late.close())
    if (serving === null) return
    ends.defer(() => serving.close())
  }
  const workers: Worker[] = []
  for (const [index, mill] of mills.entries()) {
    const { jobs = [], options, id, name } = opened.workers[index] ?? {}
    const starting = mill.work(jobs, { ...options, ...workerOptions(flags), ...omitUndefined({ id, name }) })
    const worker = await stop.unlessStopped(starting, (late) => late.stop())
    if (worker === null) return
    workers.push(worker)
  }
  for (const duty of opened.duties ?? []) ends.defer(startDuty(cli.clock, duty, log))
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
  const options = { log, clock: cli.clock, ...omitUndefined({ presence }) }
  for (const { engine } of opened.workers) {
    const mill = await stop.unlessStopped(open(engine, options), (late) => late.close())
    if (mill === null) break
    mills.push(mill)
  }
  return mills
}

/** Returns the function that stops it, which waits for a run that is under way. */
function startDuty(clock: Clock, { name, every, run }: PresetDuty, log: Log): () => Promise<void> {
  const stopping = new AbortController()
  const everyMs = parseDurationMs(every, 'every')
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await run().catch((error: unknown) => {
        log.error('A duty failed; it is tried again', { duty: name, error: errorText(error), in_ms: everyMs })
      })
      await clock.sleep(everyMs, stopping.signal)
    }
  }
  const done = loop()
  return () => {
    stopping.abort()
    return done
  }
}
