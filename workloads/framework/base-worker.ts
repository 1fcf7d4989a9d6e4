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
import type { Tenant } from '../../src/job/job.ts'
import { isFinal, isRetryable } from '../../src/job/policy.ts'
import type { Predecessor } from '../../src/job/predecessors.ts'
import { silentLog } from '../../src/observe/log.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { currentTenant } from '../../src/worker/context.ts'
import { specOfAny, type TypeOptions } from './defaults.ts'
import { type Metrics, noMetrics, prefixed } from './metrics.ts'
import { type Limiter, toLimit } from './options.ts'

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
  readonly clock?: Clock
}

export interface WorkerJob<Data = unknown> extends RunningJob {
  readonly data: Data
  /** Aborts on timeout, a lost lease, cancellation, and at the end of a stop's drain time. */
  readonly signal: AbortSignal
  readonly log: Log
  /** Resolves to false if the lease is lost. */
  updateProgress(progress: number | object): Promise<boolean>
  /** The outcomes of the jobs that this one waited for. */
  readonly after: readonly Predecessor[]
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
  protected readonly metrics: Metrics
  readonly #clock: Clock
  /** By start, since a retry is another start. */
  readonly #startedAtMs = new WeakMap<RunningJob, number>()
  #definition: HandledJob<Input, Data, Result> | null = null

  constructor(type: string, config: WorkerConfig<Data, Input> = {}, outlets: WorkerOutlets = {}) {
    const { log = silentLog, metrics = noMetrics, clock = systemClock } = outlets
    this.type = type
    this.config = config
    this.logger = named(log, `worker:${type}`)
    this.metrics = prefixed(metrics, `worker.${type}`, this.logger)
    this.#clock = clock
    if (typeof this.process !== 'function') {
      throw new OptionError(`the worker of '${type}' has no 'process'; implement process(data, job)`)
    }
  }

  abstract process(data: Data, job: WorkerJob<Data>): Promise<Result> | Result

  onStart(_job: RunningJob): unknown {
    return undefined
  }

  onComplete(_job: RunningJob, _result: Result): unknown {
    return undefined
  }

  /** On every failed attempt; `final` when the job is now a dead letter. */
  onFailed(_job: RunningJob, _error: unknown, _final: boolean): unknown {
    return undefined
  }

  onProgress(_job: RunningJob, _progress: unknown): unknown {
    return undefined
  }

  /**
   * By default it judges errors of HTTP calls, and unknown errors are retried. An override judges every error: false
   * makes the job a dead letter at once.
   */
  isRetryable(error: unknown): boolean {
    return isRetryable(error)
  }

  /** The tenant of the calling job, also in functions that `process` calls. */
  protected get tenant(): Tenant | null {
    return currentTenant()
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
      ...(payload !== undefined && { payload: payload as NonNullable<JobSpec<Schema, Result>['payload']> }),
      ...(concurrency !== undefined && { concurrency }),
      ...(limiter !== undefined && { limit: toLimit(limiter) }),
      hooks: this.#hooks(),
    }).handledBy((context) => this.#run(context))
  }

  async #run(context: JobContext<Data>): Promise<Result> {
    try {
      return await this.process(context.payload, jobOf(context))
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
      onStart: (job) => {
        this.#startedAtMs.set(job, this.#clock.monotonicMs())
        this.metrics.increment('started')
        this.logger.info('Job started', about(job))
        return this.onStart(job)
      },
      onComplete: (job, result) => {
        const startedAtMs = this.#startedAtMs.get(job)
        this.metrics.increment('completed')
        if (startedAtMs !== undefined) this.metrics.timing('duration', this.#clock.monotonicMs() - startedAtMs)
        this.logger.info('Job completed', about(job))
        // What the engine has accepted is what `process` returned.
        return this.onComplete(job, result as Result)
      },
      onFailed: (job, error, final) => {
        const original = originalOf(error)
        this.metrics.increment('failed')
        this.logger.error('Job failed', { ...about(job), final, error: messageOf(original) })
        return this.onFailed(job, original, final)
      },
      onProgress: (job, progress) => {
        this.logger.debug('Job progress', { ...about(job), progress })
        return this.onProgress(job, progress)
      },
    }
  }
}

function jobOf<Data>(context: JobContext<Data>): WorkerJob<Data> {
  return {
    ...context.job,
    data: context.payload,
    after: context.after,
    updateProgress: (progress) => context.progress(progress),
    get signal() {
      return context.signal
    },
    get log() {
      return context.log
    },
  }
}

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
