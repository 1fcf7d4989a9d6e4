import { open } from '../client/mill.ts'
import { OptionError, UnsupportedError } from '../errors.ts'
import { redact } from '../job/error-record.ts'
import { reapRegularly } from '../worker/reaping.ts'
import { newWorkerId } from '../worker/worker-id.ts'
import type { Cli, SharedOptions } from './cli.ts'
import { openLog } from './log.ts'
import type { WorkerFlags } from './run-worker.ts'
import { onStopSignals } from './stop-signals.ts'

const REAP_DEFAULT_MS = 30_000

/** The reaper alone, until SIGTERM or SIGINT. */
export async function runReaper(cli: Cli, flags: SharedOptions & WorkerFlags): Promise<void> {
  const { clock, terminal } = cli
  const everyMs = typeof flags.reap === 'number' ? flags.reap : REAP_DEFAULT_MS
  if (everyMs < 1) throw new OptionError(`'reap' is ${everyMs} ms; give at least 1 ms`)
  const log = openLog(terminal, clock, { json: flags.json, level: flags.logLevel })
  const mill = await open(flags.engine, { log, clock })
  try {
    const { engine, events } = mill
    if (engine.capabilities.recovery !== 'reaper') {
      throw new UnsupportedError({ engine: engine.name, limit: 'needs no reaper; name a module that exports jobs' })
    }
    const worker = newWorkerId()
    const parts = { engine, events, clock, random: Math.random, redactor: redact, definitions: new Map(), worker }
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
    const unsubscribe = onStopSignals(
      clock,
      () => stop(),
      () => {},
    )
    log.info('Reaper started', { worker_id: worker, every_ms: everyMs })
    const stopReaping = reapRegularly(parts, everyMs)
    await stopped
    await stopReaping()
    unsubscribe()
    log.info('Reaper stopped', { worker_id: worker })
  } finally {
    await mill.close()
  }
}
