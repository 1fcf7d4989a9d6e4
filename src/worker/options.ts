import type { Engine } from '../engine/engine.ts'
import type { WithPresence } from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import type { Events } from '../events.ts'
import { parseAgeingMs } from '../job/ageing.ts'
import type { AnyJob, Log } from '../job/definition.ts'
import type { Redactor } from '../job/error-record.ts'
import type { Tracing } from '../job/job.ts'
import { LOG_LEVELS, LOG_LINES_DEFAULT, LOG_LINES_MAX, type LogLevel } from '../job/job-log.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import type { Prepare } from '../keeper/parts.ts'
import type { RetentionPolicy } from '../keeper/retention.ts'
import type { Clock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import type { KeptLogs } from './log-buffer.ts'

export interface WorkerOptions {
  /** How many handlers run at once, over all types. Default: 10, or more if one of the types has a higher `concurrency`. */
  readonly concurrency?: number
  /**
   * Keeps jobs of low priority from waiting for ever: a due job counts as one priority more urgent for each `ageing` that
   * it has waited. SQLite, Postgres and memory only. Default: off, strict priority.
   */
  readonly ageing?: Duration
  /** How long `stop` waits for running handlers before it aborts them. Default: 30s. */
  readonly drain?: Duration
  /** How often to look for jobs when no wake-up arrives. Default: 1s; on Postgres and Redis as often as `poll` in their URL says. */
  readonly poll?: Duration
  /** How often to recover jobs of dead workers. Default: 30s. False: another process does it. */
  readonly reap?: Duration | false
  /** False: another process does the scheduling, reaping and cleaning up. Default: true. */
  readonly keeper?: boolean
  /** How long finished jobs stay. Default: 7d, dead letters for ever. False: another process cleans up. */
  readonly retention?: RetentionPolicy | false
  /** False: `mill.workers()` does not list this worker. Default: true. */
  readonly presence?: boolean
  /**
   * Default: `hostname:pid:suffix`. If another living worker has the id, a suffix is added and a `worker.error` event is
   * emitted.
   */
  readonly id?: string
  /** What heartbeats call it, where several kinds of workers run one type. It must have one type. Default: its types. */
  readonly name?: string
  /**
   * What handlers say by `log` is kept with their jobs (`mill.logs`): lines of `level` or more severe, the newest `lines` of
   * each job, at most 64 KB. Default: `{ level: 'info', lines: 200 }`, where the engine keeps logs. False: nothing is kept.
   */
  readonly keepLogs?: false | { readonly level?: LogLevel; readonly lines?: number }
  /** Stop gracefully on SIGTERM and SIGINT. Default: false. */
  readonly signals?: boolean
}

const WORKER_NAMES: OptionNames<WorkerOptions> = {
  concurrency: true,
  ageing: true,
  drain: true,
  poll: true,
  reap: true,
  keeper: true,
  retention: true,
  presence: true,
  id: true,
  name: true,
  keepLogs: true,
  signals: true,
}

export interface ResolvedWorkerOptions {
  readonly concurrency: number
  /** Null: strict priority. */
  readonly ageingMs: number | null
  readonly drainMs: number
  /** Null: as the engine does it. */
  readonly pollMs: number | null
  readonly id: string | null
  /** Null: heartbeats have the types. */
  readonly name: string | null
  /** Null: nothing is kept. */
  readonly keepLogs: KeptLogs | null
  readonly signals: boolean
  readonly presence: boolean
}

/** What a worker is built from. */
export interface WorkerParts {
  readonly engine: Engine & WithPresence
  readonly events: Events
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly redactor: Redactor
  readonly resultBytesMax: number
  /** Prepares the jobs of schedules. Without it, the worker's keeper runs none. */
  readonly prepare?: Prepare
  readonly tracing?: Tracing
}

/** `jobs`: those that the worker runs. */
export function resolveWorkerOptions(options: WorkerOptions, jobs: readonly AnyJob[]): ResolvedWorkerOptions {
  refuseUnknown(options, WORKER_NAMES, 'work')
  const concurrency = options.concurrency ?? Math.max(10, ...jobs.map((job) => job.concurrency ?? 0))
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new OptionError(`'concurrency' is ${concurrency}; give a whole number from 1`)
  }
  const pollMs = options.poll === undefined ? null : parseDurationMs(options.poll, 'poll')
  if (pollMs !== null && pollMs < 1) throw new OptionError(`'poll' is ${pollMs} ms; give at least 1 ms`)
  if (options.id === '') throw new OptionError(`'id' is empty; leave it out, or give a name that no other worker has`)
  return {
    concurrency,
    ageingMs: parseAgeingMs(options.ageing),
    drainMs: parseDurationMs(options.drain ?? '30s', 'drain'),
    pollMs,
    id: options.id ?? null,
    name: nameOf(options, jobs),
    keepLogs: keepLogsOf(options.keepLogs),
    signals: options.signals ?? false,
    presence: options.presence ?? true,
  }
}

function keepLogsOf(given: WorkerOptions['keepLogs'] = {}): KeptLogs | null {
  if (given === false) return null
  refuseUnknown(given, { level: true, lines: true }, 'keepLogs')
  const { level = 'info', lines = LOG_LINES_DEFAULT } = given
  if (!LOG_LEVELS.includes(level)) {
    throw new OptionError(`'keepLogs.level' is ${String(level)}; give one of ${LOG_LEVELS.join(', ')}`)
  }
  if (!Number.isInteger(lines) || lines < 1 || lines > LOG_LINES_MAX) {
    throw new OptionError(`'keepLogs.lines' is ${lines}; give a whole number from 1 to ${LOG_LINES_MAX}`)
  }
  return { level, lines }
}

/** Heartbeats of several types under one name could not be told apart. */
function nameOf({ name }: WorkerOptions, jobs: readonly AnyJob[]): string | null {
  if (name === undefined) return null
  if (name === '') throw new OptionError(`'name' is empty; leave it out, or give the name that heartbeats have`)
  const types = new Set(jobs.map(({ type }) => type))
  if (types.size === 1) return name
  throw new OptionError(`'name' is for a worker of one type, and this one has ${types.size}; leave it out`)
}
