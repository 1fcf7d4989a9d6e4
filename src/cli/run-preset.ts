import { appendFileSync } from 'node:fs'
import { type Mill, open } from '../client/mill.ts'
import type { Log } from '../job/definition.ts'
import { toIso } from '../time/iso.ts'
import type { Worker } from '../worker/worker.ts'
import type { Cli, SharedOptions } from './cli.ts'
import { type Deed, loadPreset, type Preset } from './extensions.ts'
import { openLog } from './log.ts'
import { untilStopped, type WorkerFlags, workerOptions } from './run-worker.ts'
import type { Serve, Serving } from './serving.ts'
import { StopRequest } from './stop-signals.ts'

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
