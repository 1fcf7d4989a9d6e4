import type { Engine, JobFilter, Transaction } from '../engine/engine.ts'
import type { RememberingPresence } from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import type { AnyJob, Log } from '../job/definition.ts'
import type { Redactor } from '../job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { checkListLimit } from '../job/list-limit.ts'
import { ENQUEUE_NAMES, type EnqueueOptions, PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import { JOB_STATES } from '../job/states.ts'
import type { Alerter } from '../observe/alerts/dead-letter-alerts.ts'
import type { Clock } from '../time/clock.ts'

export interface MillOptions {
  /** Definitions that can be enqueued by name. Definitions passed to `enqueue` and `work` need not be listed. */
  readonly jobs?: readonly AnyJob[]
  readonly clock?: Clock
  /** Returns a number from 0 to 1, for jitter. Default: Math.random. */
  readonly random?: () => number
  /** Where log lines go. Default: nowhere. */
  readonly log?: Log
  /** Called once for every job that becomes a dead letter in this process. */
  readonly alerter?: Alerter
  /** Redacts every error text before it is stored or logged, after the built-in redactor. */
  readonly redact?: Redactor
  /** The largest payload, result or progress in bytes. Default: 1 MiB. */
  readonly payloadBytesMax?: number
  /** False: never create or change the store's schema; run `millrace migrate` instead. Default: true. */
  readonly migrate?: boolean
  /**
   * Where heartbeats of workers are kept and read: a URL such as `redis://…`, or a presence of your own, which stays open.
   * Default: with the jobs, where the engine can.
   */
  readonly presence?: string | RememberingPresence
}

/** What `open` takes: a URL, an engine, or your own database handle. */
export type EngineTarget = string | Engine | SqliteHandle | PostgresHandle | RedisHandle

type Method = (...args: never[]) => unknown

/** A database of `node:sqlite` or better-sqlite3. */
interface SqliteHandle {
  readonly exec: Method
  readonly prepare: Method
  readonly close: Method
}

/** A pool or client of pg. */
interface PostgresHandle {
  readonly query: Method
  readonly on: Method
  readonly removeListener: Method
}

/** A client of ioredis. */
interface RedisHandle {
  readonly status: string
  readonly duplicate: Method
}

export const MILL_NAMES: OptionNames<MillOptions> = {
  jobs: true,
  clock: true,
  random: true,
  log: true,
  alerter: true,
  redact: true,
  payloadBytesMax: true,
  migrate: true,
  presence: true,
}

type Within = { readonly within?: Transaction }

export type EnqueueWithinOptions = EnqueueOptions & Within

/** The payload may be left out exactly where the job has no schema for one. */
export type PayloadAndOptions<Payload> = unknown extends Payload
  ? [payload?: Payload, options?: EnqueueWithinOptions]
  : [payload: Payload, options?: EnqueueWithinOptions]

export const WITHIN_NAMES: OptionNames<Within> = { within: true }
export const ENQUEUE_WITHIN_NAMES: OptionNames<EnqueueWithinOptions> = { ...ENQUEUE_NAMES, ...WITHIN_NAMES }

export function checkDefinitions(jobs: readonly AnyJob[]): void {
  for (const job of jobs) {
    if (jobs.some((other) => other.type === job.type && other !== job)) {
      throw new OptionError(`'jobs' has two definitions of '${job.type}'; keep one`)
    }
  }
}

/** Of a queue with critical names, these: the others there are not. */
export function criticalTypes(jobs: readonly AnyJob[]): string[] {
  return jobs
    .filter((job) => job.critical)
    .flatMap((job) => {
      const names = criticalTypes([...(job.byName?.values() ?? [])])
      return names.length === 0 ? [job.type] : names
    })
}

const FILTER_NAMES: OptionNames<JobFilter> = { state: true, type: true, limit: true, before: true }

export function checkFilter(filter: JobFilter): JobFilter {
  refuseUnknown(filter, FILTER_NAMES, 'jobs')
  const { limit, state } = filter
  checkListLimit(limit)
  if (state !== undefined && !JOB_STATES.includes(state)) {
    throw new OptionError(`'state' is '${state}'; give one of ${JOB_STATES.join(', ')}`)
  }
  return filter
}

export function checkBytesMax(bytesMax: number = PAYLOAD_BYTES_MAX_DEFAULT): void {
  if (Number.isInteger(bytesMax) && bytesMax >= 1) return
  throw new OptionError(`'payloadBytesMax' is ${bytesMax}; give bytes from 1`)
}

/** The type of `enqueueMany` excludes them. Without types, all jobs but the first would be dropped as duplicates. */
export function refuseOptionsOfOne({ key, latest }: EnqueueOptions): void {
  if (key === undefined && latest === undefined) return
  throw new OptionError(`'key' and 'latest' belong to one job; enqueue these jobs one by one`)
}
