import type { Engine } from '../engine/engine.ts'
import { OptionError } from '../errors.ts'
import type { Events } from '../events.ts'
import type { Log } from '../job/definition.ts'
import type { Redactor } from '../job/error-record.ts'
import type { Tracing } from '../job/job.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import type { Prepare } from '../keeper/parts.ts'
import type { RetentionPolicy } from '../keeper/retention.ts'
import type { Clock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'

export interface WorkerOptions {
  /** Handlers at once in this worker, over all types. 10 unless told. */
  readonly concurrency?: number
  /** How long `stop` waits for running handlers before it aborts them. 30 s unless told. */
  readonly drain?: Duration
  /** The longest a claim waits before it asks again, should every wake-up be missed. 1 s unless told. */
  readonly poll?: Duration
  /** How often expired leases of dead workers are looked for. 30 s unless told; false leaves it to another process. */
  readonly reap?: Duration | false
  /** False: this worker runs no keeper, so schedules, reaping and tidying up are left to another process. */
  readonly keeper?: boolean
  /** How long finished jobs stay; completed ones 7 days unless told. False leaves tidying up to another process. */
  readonly retention?: RetentionPolicy | false
  /** False: this worker does not say in the engine's store that it lives, so `mill.workers()` does not show it. */
  readonly presence?: boolean
  /**
   * Default: `hostname:pid:suffix`. Where another living worker has the id, this one gets a suffix, and a `worker.error`
   * event says so.
   */
  readonly id?: string
  /** Stop gracefully on SIGTERM and SIGINT. Off unless told, because the process is the user's. */
  readonly signals?: boolean
}

const WORKER_NAMES: OptionNames<WorkerOptions> = {
  concurrency: true,
  drain: true,
  poll: true,
  reap: true,
  keeper: true,
  retention: true,
  presence: true,
  id: true,
  signals: true,
}

export interface ResolvedWorkerOptions {
  readonly concurrency: number
  readonly drainMs: number
  readonly pollMs: number
  readonly id: string | null
  readonly signals: boolean
  readonly presence: boolean
}

/** What a worker stands on. */
export interface WorkerParts {
  readonly engine: Engine
  readonly events: Events
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly redactor: Redactor
  readonly resultBytesMax: number
  /** How the client prepares a job; without it the worker's keeper has no schedules. */
  readonly prepare?: Prepare
  /** Who traces, if anybody does. */
  readonly tracing?: Tracing
}

export function resolveWorkerOptions(options: WorkerOptions): ResolvedWorkerOptions {
  refuseUnknown(options, WORKER_NAMES, 'work')
  const concurrency = options.concurrency ?? 10
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new OptionError(`'concurrency' is ${concurrency}; give a whole number from 1`)
  }
  const pollMs = parseDurationMs(options.poll ?? '1s', 'poll')
  if (pollMs < 1) throw new OptionError(`'poll' is ${pollMs} ms; give at least 1 ms`)
  if (options.id === '') throw new OptionError(`'id' is empty; leave it out, or give a name that no other worker has`)
  return {
    concurrency,
    drainMs: parseDurationMs(options.drain ?? '30s', 'drain'),
    pollMs,
    id: options.id ?? null,
    signals: options.signals ?? false,
    presence: options.presence ?? true,
  }
}
