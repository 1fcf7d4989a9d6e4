import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isError, isMillraceError, NonRetryable, OptionError } from '../../src/errors.ts'
import {
  defineJob,
  type HandledJob,
  type Hooks,
  type JobContext,
  type JobSpec,
  type Log,
  type RunningJob,
} from '../../src/job/definition.ts'
import { toErrorRecord } from '../../src/job/error-record.ts'
import type { StoredJob, Tenant } from '../../src/job/job.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { isFinal, isRetryable } from '../../src/job/policy.ts'
import type { Alerter } from '../../src/observe/index.ts'
import { silentLog } from '../../src/observe/log.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { currentTenant, runAsCurrent } from '../../src/worker/context.ts'
import { specOfAny, type TypeOptions } from './defaults.ts'
import { type Metrics, noMetrics, prefixed, type WorkerMetrics } from './metrics.ts'
import { type Limiter, toLimit } from './options.ts'
import { besideTenant, type HookedJob, Start, type WorkerJob } from './worker-job.ts'

export interface WorkerConfig<Data = unknown, Input = Data> {
  /** Jobs of the type that run at once in one process. Default: the worker's concurrency. */
  readonly concurrency?: number
  readonly limiter?: Limiter
  /** Where they differ from the type's defaults. */
  readonly options?: TypeOptions
  /** Any Standard Schema. Without one the data is not checked. */
  readonly payload?: StandardSchemaV1<Input, Data>
}

export interface WorkerOutlets {
  /** Gets a line for every start and end, under the worker's name. The mill's log has them too. */
  readonly log?: Log
  readonly metrics?: Metrics
  /** Gets what the worker sends with `this.metrics.alert`. Final failures are sent by the mill, to its own alerter. */
  readonly alerter?: Alerter
  readonly clock?: Clock
}

/**
 * A worker as a class, instead of `defineJob`. It runs nothing itself: `definition` is an ordinary job definition, and
 * `mill.work` runs it beside others.
 *
 * Overriding the hooks, which are empty, does not change counting and logging. A hook that fails is reported and does not
 * change the job. The mill sends the alert of a final failure (`alerter` of `open`), once per dead letter.
 *
 * @example
 * class QuotaWorker extends BaseWorker<{ orgId: string }, number> {
 *   constructor() { super('quota-check', { concurrency: 5, limiter: { max: 10, duration: 1_000 } }) }
 *   async process({ orgId }: { orgId: string }) { return usage(orgId) }
 * }
 * await mill.work([new QuotaWorker().definition])
 */
export abstract class BaseWorker<Data = unknown, Result = unknown, Input = Data> {
  /** One of `JOB_TYPES`, with its defaults, or any other type. */
  readonly type: string
  readonly config: WorkerConfig<Data, Input>
  /** Its lines carry the name `worker:{type}`. */
  protected readonly logger: Log
  /** Its names begin with `worker.{type}.`. */
  protected readonly metrics: WorkerMetrics
  readonly #clock: Clock
  /** By start, since a retry is another start. */
  readonly #starts = new WeakMap<RunningJob, Start<Data>>()
  #definition: HandledJob<Input, Data, Result> | null = null

  constructor(type: string, config: WorkerConfig<Data, Input> = {}, outlets: WorkerOutlets = {}) {
    refuseUnknown(outlets, OUTLET_NAMES, `the outlets of the worker of '${type}'`)
    const { log = silentLog, metrics = noMetrics, alerter = null, clock = systemClock } = outlets
    this.type = type
    this.config = config
    this.logger = named(log, `worker:${type}`)
    this.metrics = prefixed(metrics, { prefix: `worker.${type}`, log: this.logger, alerter, clock })
    this.#clock = clock
    if (typeof this.process !== 'function') {
      throw new OptionError(`the worker of '${type}' has no 'process'; implement process(data, job)`)
    }
  }

  abstract process(data: Data, job: WorkerJob<Data>): Promise<Result> | Result

  /** Called before the data is checked and `process` is called. */
  onStart(_job: HookedJob): unknown {
    return undefined
  }

  onComplete(_job: HookedJob, _result: Result): unknown {
    return undefined
  }

  /** On every failed attempt; `final` when the job is now a dead letter. */
  onFailed(_job: HookedJob, _error: unknown, _final: boolean): unknown {
    return undefined
  }

  onProgress(_job: HookedJob, _progress: unknown): unknown {
    return undefined
  }

  /**
   * By default it judges errors of HTTP calls, and unknown errors are retried. An override judges every error: false
   * makes the job a dead letter at once.
   */
  isRetryable(error: unknown): boolean {
    return isRetryable(error)
  }

  /** The tenant of the calling job, in `process`, in hooks and in functions that they call. */
  protected get tenant(): Tenant | null {
    return currentTenant()
  }

  /** The same, undefined for a job without a tenant. It is not a field: jobs that run at once would mix their tenants. */
  protected get tenantContext(): Tenant | undefined {
    return currentTenant() ?? undefined
  }

  /** For `mill.work`, `mill.enqueue`, `open({ jobs })` and modules of the command line. */
  get definition(): HandledJob<Input, Data, Result> {
    this.#definition ??= this.#define()
    return this.#definition
  }

  #define(): HandledJob<Input, Data, Result> {
    const { concurrency, limiter, options, payload } = this.config
    type Schema = StandardSchemaV1<Input, Data>
    return defineJob<Schema>({
      ...specOfAny(this.type, options),
      // Whether the payload is JSON depends on the subclass, so the compiler cannot check it here; `enqueue` does.
      ...(payload !== undefined && {
        payload: besideTenant(payload) as NonNullable<JobSpec<Schema, Result>['payload']>,
      }),
      ...(concurrency !== undefined && { concurrency }),
      ...(limiter !== undefined && { limit: toLimit(limiter) }),
      hooks: this.#hooks(),
    }).handledBy((context) => this.#run(context))
  }

  async #run(context: JobContext<Data>): Promise<Result> {
    const start = this.#startOf(context.job, null)
    const job = start.begin(context)
    const process = (): Promise<Result> | Result => this.process(context.payload, job)
    try {
      // The mill does not look for a tenant in the job's data.
      return await (start.running.tenant === context.job.tenant ? process() : runAsCurrent({ job }, process))
    } catch (error) {
      throw this.#judged(error)
    }
  }

  #judged(error: unknown): unknown {
    // NonRetryable, RetryAfter and Offline decide for themselves.
    const isOverridden = this.isRetryable !== BaseWorker.prototype.isRetryable
    if (!isOverridden || isMillraceError(error)) return error
    if (!this.isRetryable(error)) return new Final(error)
    return isFinal(error) ? new Transient(error) : error
  }

  #hooks(): Hooks {
    return {
      onStart: (running, stored) => {
        const start = this.#startOf(running, stored)
        this.metrics.increment('started')
        this.logger.info('Job started', about(running))
        return runAsCurrent({ job: start.running }, () => this.onStart(start.current))
      },
      onComplete: (running, result) => {
        const start = this.#startOf(running, null)
        this.metrics.increment('completed')
        this.metrics.timing('duration', this.#clock.monotonicMs() - start.startedAtMs)
        this.logger.info('Job completed', about(running))
        // What the engine has accepted is what `process` returned.
        return runAsCurrent({ job: start.running }, () => this.onComplete(start.end(), result as Result))
      },
      onFailed: (running, error, final) => {
        const start = this.#startOf(running, null)
        const original = originalOf(error)
        this.metrics.increment('failed')
        this.logger.error('Job failed', { ...about(running), final, error: messageOf(original) })
        return runAsCurrent({ job: start.running }, () => this.onFailed(start.end(), original, final))
      },
      onProgress: (running, progress) => {
        const start = this.#startOf(running, null)
        this.logger.debug('Job progress', { ...about(running), progress })
        return runAsCurrent({ job: start.running }, () => this.onProgress(start.current, progress))
      },
    }
  }

  #startOf(running: RunningJob, stored: StoredJob | null): Start<Data> {
    const known = this.#starts.get(running)
    if (known !== undefined) return known
    const start = new Start<Data>(running, {
      stored,
      startedAtMs: this.#clock.monotonicMs(),
      processedOn: this.#clock.nowMs(),
      definition: () => this.definition,
    })
    this.#starts.set(running, start)
    return start
  }
}

const OUTLET_NAMES: OptionNames<WorkerOutlets> = { log: true, metrics: true, alerter: true, clock: true }

/** An error that a subclass's own `isRetryable` has judged. Its record looks like the original, and hooks see that. */
class Final extends NonRetryable {
  constructor(error: unknown) {
    super(messageOf(error), { cause: error })
    lookLike(this, error)
  }
}

/** For an error that the core would take for final by its HTTP status, though the worker wants another try. */
class Transient extends Error {
  constructor(error: unknown) {
    super(messageOf(error), { cause: error })
    lookLike(this, error)
  }
}

function lookLike(copy: Error, error: unknown): void {
  if (!isError(error)) return
  copy.name = error.name
  if (error.stack !== undefined) copy.stack = error.stack
}

function originalOf(error: unknown): unknown {
  return error instanceof Final || error instanceof Transient ? error.cause : error
}

/** Anything can be thrown, also what cannot be turned into text. */
function messageOf(error: unknown): string {
  return toErrorRecord(error).message
}

/** Ids, never the data (I12). */
function about({ id, attempt, attempts }: RunningJob) {
  return { job_id: id, attempts: attempt, attempts_max: attempts }
}

function named(log: Log, name: string): Log {
  const write =
    (level: keyof Log): Log[keyof Log] =>
    (text, fields) =>
      log[level](text, { ...fields, name })
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}
