import { admitTransaction, controlsOf, inspectorOf } from '../engine/admission.ts'
import type { Counts, Engine, JobFilter, Receipt, Transaction } from '../engine/engine.ts'
import { openEngine } from '../engine/open.ts'
import {
  ClosedError,
  JobEndedError,
  OptionError,
  UnknownJobError,
  UnknownTypeError,
  WaitTimeoutError,
} from '../errors.ts'
import { Events } from '../events.ts'
import type { AnyJob, JobDefinition, Log } from '../job/definition.ts'
import { type Redactor, redact } from '../job/error-record.ts'
import type { JobEvent, JobView } from '../job/job.ts'
import { type EnqueueOptions, PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import { JOB_STATES } from '../job/states.ts'
import { type Alerter, attachAlerts } from '../observe/alerts.ts'
import { attachLog, silentLog } from '../observe/log.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import type { WorkerOptions } from '../worker/options.ts'
import { startWorker, type Worker } from '../worker/worker.ts'
import { prepareJobs } from './prepare.ts'

export interface MillOptions {
  /** Definitions that may be enqueued by their type's name. Those passed to `enqueue` and `work` need not be listed. */
  readonly jobs?: readonly AnyJob[]
  readonly clock?: Clock
  /** A number from 0 up to 1, for jitter. Seed it in tests. */
  readonly random?: () => number
  /** Where log lines go. Silent unless told. */
  readonly log?: Log
  /** Told once of every job that becomes a dead letter here. */
  readonly alerter?: Alerter
  /** Runs after the built-in redactor on every error text that is stored or logged. */
  readonly redact?: Redactor
  /** Largest payload, result or progress in bytes; 1 MiB unless told. */
  readonly payloadBytesMax?: number
  /** False: never create or change the store's schema; run `millrace migrate` instead. */
  readonly migrate?: boolean
}

/** What `enqueue` answers. It remembers the type of the result for `mill.result`. */
export interface Enqueued<Result> extends Receipt {
  readonly resultOf?: Result
}

/**
 * Opens a mill on an engine: `sqlite:./file.db`, `memory:`, an engine, or a database handle of your own.
 *
 * @example
 * const mill = await open('sqlite:./millrace.db')
 */
export async function open(target: string | object, options: MillOptions = {}): Promise<Mill> {
  const bytesMax = options.payloadBytesMax ?? PAYLOAD_BYTES_MAX_DEFAULT
  if (!Number.isInteger(bytesMax) || bytesMax < 1)
    throw new OptionError(`'payloadBytesMax' is ${bytesMax}; give bytes from 1`)
  checkDefinitions(options.jobs ?? [])
  const engine = await openEngine(target, { clock: options.clock ?? systemClock, migrate: options.migrate ?? true })
  return new Mill(engine, options)
}

function checkDefinitions(jobs: readonly AnyJob[]): void {
  for (const job of jobs) {
    if (jobs.some((other) => other.type === job.type && other !== job)) {
      throw new OptionError(`'jobs' has two definitions of '${job.type}'; keep one`)
    }
  }
}

function criticalTypes(jobs: readonly AnyJob[]): string[] {
  return jobs.filter((job) => job.critical).map((job) => job.type)
}

const LIST_LIMIT_MAX = 10_000

/** A negative limit would mean all to SQLite, and a page of everything would fill the memory of whoever asked. */
function checkFilter(filter: JobFilter): JobFilter {
  const { limit, state } = filter
  if (!Number.isInteger(limit) || limit < 1 || limit > LIST_LIMIT_MAX) {
    throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${LIST_LIMIT_MAX}`)
  }
  if (state !== undefined && !JOB_STATES.includes(state)) {
    throw new OptionError(`'state' is '${state}'; give one of ${JOB_STATES.join(', ')}`)
  }
  return filter
}

/** The client: enqueue, look, wait, cancel, and start workers. One per process and engine is enough. */
export class Mill {
  readonly engine: Engine
  readonly events: Events
  readonly #clock: Clock
  readonly #random: () => number
  readonly #log: Log
  readonly #redact: Redactor
  readonly #bytesMax: number
  readonly #known: ReadonlyMap<string, AnyJob>
  readonly #critical: Set<string>
  readonly #workers = new Set<Worker>()
  #closing: Promise<void> | null = null

  /** Use `open`. */
  constructor(engine: Engine, options: MillOptions) {
    const own = options.redact
    this.engine = engine
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#log = options.log ?? silentLog
    this.#redact = own === undefined ? redact : (text) => own(redact(text))
    this.#bytesMax = options.payloadBytesMax ?? PAYLOAD_BYTES_MAX_DEFAULT
    this.#known = new Map((options.jobs ?? []).map((job) => [job.type, job]))
    this.events = new Events((error) => this.#log.error('An event listener threw', { error: String(error) }))
    this.#critical = new Set(criticalTypes(options.jobs ?? []))
    if (options.log !== undefined) attachLog(this.events, options.log)
    if (options.alerter !== undefined) {
      const isCritical = (type: string): boolean => this.#critical.has(type)
      attachAlerts(this.events, { alerter: options.alerter, log: this.#log, isCritical })
    }
  }

  /** Stores one job. When this resolves the job is durable as far as the engine's capabilities say (I1). */
  async enqueue<Input, Output, Result>(
    job: JobDefinition<Input, Output, Result> | string,
    payload: NoInfer<Input>,
    options: EnqueueOptions & { readonly within?: Transaction } = {},
  ): Promise<Enqueued<Result>> {
    const [receipt] = await this.#enqueueAll(job, [payload], options)
    if (receipt === undefined) throw new Error('the engine returned no receipt for one job')
    return receipt
  }

  /** Stores many jobs of one type in one call; whole or not at all where the engine's `enqueueAtomic` says so. */
  async enqueueMany<Input, Output, Result>(
    job: JobDefinition<Input, Output, Result> | string,
    payloads: readonly NoInfer<Input>[],
    options: Omit<EnqueueOptions, 'key' | 'latest'> & { readonly within?: Transaction } = {},
  ): Promise<readonly Enqueued<Result>[]> {
    // The type leaves them out; a caller without types would see all jobs but the first vanish.
    const one: EnqueueOptions = options
    if (one.key !== undefined || one.latest !== undefined) {
      throw new OptionError(`'key' and 'latest' belong to one job; enqueue these jobs one by one`)
    }
    return this.#enqueueAll(job, payloads, options)
  }

  async #enqueueAll(
    job: AnyJob | string,
    payloads: readonly unknown[],
    options: EnqueueOptions & { readonly within?: Transaction },
  ) {
    this.#assertOpen()
    const definition = this.#definition(job)
    if (options.within !== undefined) admitTransaction(this.engine)
    const preparation = { engine: this.engine, nowMs: this.#clock.nowMs(), payloadBytesMax: this.#bytesMax }
    const jobs = await prepareJobs(preparation, definition, payloads, options)
    const receipts = await this.engine.enqueue(jobs, options.within)
    if (!this.events.hears('job.enqueued')) return receipts
    for (const [index, { id, status }] of receipts.entries()) {
      const bytes = Buffer.byteLength(jobs[index]?.payload ?? '')
      this.events.emit('job.enqueued', { id, type: definition.type, status, bytes })
    }
    return receipts
  }

  /** The job as it is now, or null. */
  async job(id: string): Promise<JobView | null> {
    return inspectorOf(this.engine).find(id)
  }

  /** Jobs, newest first. */
  async jobs(filter: Partial<JobFilter> = {}): Promise<readonly JobView[]> {
    return inspectorOf(this.engine).list(checkFilter({ limit: 100, ...filter }))
  }

  /** What happened to a job, oldest first. */
  async history(id: string): Promise<readonly JobEvent[]> {
    return inspectorOf(this.engine).history(id)
  }

  /**
   * Waits for a job's result. Throws a JobEndedError if it will never have one, a WaitTimeoutError after `timeout`
   * (30 s unless told), and the signal's reason when that aborts.
   */
  async result<Result = unknown>(
    of: string | Enqueued<Result>,
    wait: { readonly timeout?: Duration; readonly signal?: AbortSignal } = {},
  ): Promise<Result> {
    const id = typeof of === 'string' ? of : of.id
    const waitMs = parseDurationMs(wait.timeout ?? '30s', 'timeout')
    const signal = wait.signal ?? new AbortController().signal
    const view = await inspectorOf(this.engine).waitFor(id, { waitMs, signal })
    if (view === null) throw new UnknownJobError(id)
    // The handler's type is the caller's knowledge: what is stored is its JSON.
    if (view.state === 'completed') return view.result as Result
    if (view.ended !== null) throw new JobEndedError('ERR_JOB_ENDED', `job ${id} was ${view.ended}; it has no result`)
    if (view.state === 'dead_letter') {
      throw new JobEndedError(
        'ERR_JOB_DEAD',
        `job ${id} is a dead letter: ${view.error?.message ?? 'no error recorded'}`,
      )
    }
    signal.throwIfAborted()
    throw new WaitTimeoutError(`the result of job ${id}`, waitMs)
  }

  /** Ends a job that has not finished, also while another process runs it. False if it is unknown or finished. */
  async cancel(id: string, by: { readonly who?: string; readonly reason?: string } = {}): Promise<boolean> {
    const act = { who: by.who ?? 'api', reason: by.reason ?? 'cancelled' }
    const cancelled = await controlsOf(this.engine).cancel(id, act)
    if (cancelled) this.events.emit('job.cancelled', { id, ...act })
    return cancelled
  }

  /** How many jobs of each type are in each state. */
  async counts(): Promise<Counts> {
    return this.engine.counts()
  }

  /** Starts a worker in this process. It runs until `worker.stop()` or `mill.close()`. */
  async work(jobs: readonly AnyJob[], options: WorkerOptions = {}): Promise<Worker> {
    this.#assertOpen()
    for (const type of criticalTypes(jobs)) this.#critical.add(type)
    const parts = {
      engine: this.engine,
      events: this.events,
      clock: this.#clock,
      random: this.#random,
      log: this.#log,
      redactor: this.#redact,
      resultBytesMax: this.#bytesMax,
    }
    const worker = await startWorker(parts, jobs, options)
    if (this.#closing !== null) {
      await worker.stop('close')
      throw new ClosedError('this mill')
    }
    this.#workers.add(worker)
    void worker.stopped.then(() => this.#workers.delete(worker))
    return worker
  }

  /** Stops the workers of this mill, then closes the engine. A second call returns the same promise. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop('close')))
    await this.engine.close()
  }

  #definition(job: AnyJob | string): AnyJob {
    if (typeof job !== 'string') return job
    const definition = this.#known.get(job)
    if (definition === undefined) throw new UnknownTypeError(job, [...this.#known.keys()])
    return definition
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new ClosedError('this mill')
  }
}
