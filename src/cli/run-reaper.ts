import type { Mill } from '../client/mill.ts'
import { OptionError, UnsupportedError } from '../errors.ts'
import type { Log } from '../job/definition.ts'
import { redact } from '../job/error-record.ts'
import { reapRegularly } from '../worker/reaping.ts'
import { newWorkerId } from '../worker/worker-id.ts'
import { type Cli, type SharedOptions, withStoredMill } from './cli.ts'
import { openLog } from './log.ts'
import type { WorkerFlags } from './run-worker.ts'
import { onStopSignals } from './stop-signals.ts'

const REAP_DEFAULT_MS = 30_000

/** The reaper alone, until SIGTERM or SIGINT. */
export async function runReaper(cli: Cli, flags: SharedOptions & WorkerFlags): Promise<void> {
  const everyMs = typeof flags.reap === 'number' ? flags.reap : REAP_DEFAULT_MS
  if (everyMs < 1) throw new OptionError(`'reap' is ${everyMs} ms; give at least 1 ms`)
  const log = openLog(cli.terminal, cli.clock, { json: flags.json, level: flags.logLevel })
  await withStoredMill(flags.engine, { log, clock: cli.clock }, (mill) => reapUntilStopped(cli, mill, log, everyMs))
}

async function reapUntilStopped({ clock }: Cli, { engine, events }: Mill, log: Log, everyMs: number): Promise<void> {
  if (engine.capabilities.recovery !== 'reaper') {
    throw new UnsupportedError({ engine: engine.name, limit: 'needs no reaper; name a module that exports jobs' })
  }
  const worker = newWorkerId()
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
  // A pass is short, so there is nothing to cut short for whoever insists.
  const unsubscribe = onStopSignals(
    clock,
    () => stop(),
    () => {},
  )
  log.info('Reaper started', { worker_id: worker, every_ms: everyMs })
  const parts = { engine, events, clock, random: Math.random, redactor: redact, definitions: new Map(), worker }
  const stopReaping = reapRegularly(parts, everyMs)
  await stopped
  await stopReaping()
  unsubscribe()
  log.info('Reaper stopped', { worker_id: worker })
}
