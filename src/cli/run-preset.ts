import { appendFileSync } from 'node:fs'
import { type Mill, open } from '../client/mill.ts'
import type { Log } from '../job/definition.ts'
import { toIso } from '../time/iso.ts'
import type { Worker } from '../worker/worker.ts'
import type { Cli, SharedOptions } from './cli.ts'
import { openLog } from './log.ts'
import { type Deed, loadPreset, type Preset } from './presets.ts'
import { untilStopped, type WorkerFlags, workerOptions } from './run-worker.ts'
import type { Serve, Serving } from './serving.ts'

export interface PresetFlags extends SharedOptions, WorkerFlags {
  /** A file that gets a line of JSON for everything a handler did. */
  readonly record?: string
}

/** All workers of a preset in this process, until SIGTERM or SIGINT. */
export async function runPreset(cli: Cli, name: string, flags: PresetFlags, serve: Serve): Promise<void> {
  const preset = await loadPreset(name)
  const log = openLog(cli.terminal, cli.clock, { json: flags.json, level: flags.logLevel })
  const { record } = flags
  const note = (deed: Deed): void => {
    if (record === undefined) return
    appendFileSync(record, `${JSON.stringify({ at: toIso(cli.clock.nowMs()), ...deed })}\n`)
  }
  const mills: Mill[] = []
  let serving: Serving = { close: async () => {} }
  try {
    const workers = await startAll(cli, preset, { flags, log, note, mills })
    const [first] = mills
    if (first !== undefined) serving = await serve(first, [], log, preset.watched)
    for (const [command, what] of preset.examples(flags.engine)) log.info('To try it', { type: command, shows: what })
    await untilStopped(cli, workers, log)
  } finally {
    await serving.close()
    await Promise.all(mills.map((mill) => mill.close()))
  }
}

interface Starting {
  readonly flags: PresetFlags
  readonly log: Log
  readonly note: (deed: Deed) => void
  /** What was opened, also if a later one fails. */
  readonly mills: Mill[]
}

async function startAll(cli: Cli, preset: Preset, { flags, log, note, mills }: Starting): Promise<readonly Worker[]> {
  const workers: Worker[] = []
  for (const { id, engine, jobs } of preset.workers(flags.engine, note)) {
    const mill = await open(engine, { log, clock: cli.clock })
    mills.push(mill)
    if (workers.length === 0) await preset.prepare(mill)
    workers.push(await mill.work(jobs, { ...workerOptions(flags), id }))
  }
  return workers
}
