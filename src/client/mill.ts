import { admitTransaction, controlsOf, inspectorOf, logsOf, lookupOf, pausesOf } from '../engine/capability-checks.ts'
import type { Actor } from '../engine/dead-letters.ts'
import type { Counts, Engine, JobFilter, Receipt, Transaction } from '../engine/engine.ts'
import { openEngine, openWithPresence } from '../engine/open.ts'
import type { Pause } from '../engine/pauses.ts'
import type { WithPresence } from '../engine/presence.ts'
import { messageOf, UnknownTypeError } from '../errors.ts'
import { Events } from '../events.ts'
import type { AnyHandledJob, AnyJob, JobDefinition, Log } from '../job/definition.ts'
import { type Redactor, redactorOf } from '../job/error-record.ts'
import type { JobEvent, JobView, NewJob, Tracing } from '../job/job.ts'
import { type JobLog, readLog } from '../job/job-log.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import type { Keeper, KeeperOptions } from '../keeper/keeper.ts'
import type { Prepare } from '../keeper/parts.ts'
import { Timetable } from '../keeper/timetable.ts'
import { attachAlerts } from '../observe/alerts/dead-letter-alerts.ts'
import { attachLog, silentLog } from '../observe/log.ts'
import { type WorkerView, workersAt } from '../observe/workers.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { heedingSignals } from '../worker/early-signals.ts'
import type { WorkerOptions } from '../worker/options.ts'
import type { Worker } from '../worker/worker.ts'
import { checkActor, type Note, pauseType, resumeType, writeNote } from './audit.ts'
import { admitFlow, type Flow, prepareFlow, type ResultOf, receiptsByName } from './flow.ts'
import { Lifetime } from './lifetime.ts'
import { Limits } from './limits.ts'
import { keeperCode, searchCode, workerCode, workerIdCode } from './on-use.ts'
import {
  checkBytesMax,
  checkDefinitions,
  checkFilter,
  criticalTypes,
  ENQUEUE_WITHIN_NAMES,
  type EngineTarget,
  type EnqueueWithinOptions,
  MILL_NAMES,
  type MillOptions,
  type PayloadAndOptions,
  refuseOptionsOfOne,
  WITHIN_NAMES,
} from './options.ts'
import { type Preparation, prepareJobs } from './prepare.ts'
import { awaitResult, type ResultWait } from './result.ts'
import type { FoundJobs, SearchOptions } from './search.ts'

/** The receipt of `enqueue`. It carries the type of the result for `mill.result`. */
export interface Enqueued<Result> extends Receipt {
  readonly resultOf?: Result
}

/**
 * Opens a mill on an engine: a URL such as `sqlite:./file.db` or `memory:`, an engine, or your own database handle.
 *
 * @example
 * const mill = await open('sqlite:./millrace.db')
 */
export async function open(target: EngineTarget, options: MillOptions = {}): Promise<Mill> {
  refuseUnknown(options, MILL_NAMES, 'open')
  checkBytesMax(options.payloadBytesMax)
  checkDefinitions(options.jobs ?? [])
  const { presence, clock = systemClock, migrate = true } = options
  const settings = { clock, migrate }
  const opening = presence === undefined ? openEngine(target, settings) : openWithPresence(target, presence, settings)
  return new Mill(await opening, options)
}

/** The client: enqueue jobs, look at them, wait for results, cancel, and start workers. One per process and engine is enough. */
export class Mill {
  readonly engine: Engine & WithPresence
  readonly events: Events
  /** Schedules by name: add, pause, reschedule, run now, look ahead. */
  readonly schedules: Timetable
  /** Limits of types, changed while workers run. */
  readonly limits: Limits
  /** Who traces; `attachTracing` puts itself here. */
  readonly tracing: Tracing = { tracer: null }
  readonly #clock: Clock
  readonly #random: () => number
  readonly #log: Log
  readonly #redact: Redactor
  readonly #bytesMax: number
  readonly #known: ReadonlyMap<string, AnyJob>
  readonly #critical: Set<string>
  readonly #lifetime: Lifetime

  /** Use `open`. */
  constructor(engine: Engine & WithPresence, options: MillOptions) {
    this.engine = engine
    this.limits = new Limits(engine)
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#log = options.log ?? silentLog
    this.#lifetime = new Lifetime(this.#clock, this.#log)
    this.#redact = redactorOf(options.redact)
    this.#bytesMax = options.payloadBytesMax ?? PAYLOAD_BYTES_MAX_DEFAULT
    this.#known = new Map((options.jobs ?? []).map((job) => [job.type, job]))
    this.events = new Events((error) => this.#log.error('An event listener threw', { error: messageOf(error) }))
    this.#critical = new Set(criticalTypes(options.jobs ?? []))
    this.schedules = new Timetable({ ...this.#parts(), definitions: this.#known })
    if (options.log !== undefined) attachLog(this.events, options.log)
    const { alerter } = options
    const isCritical = (type: string): boolean => this.#critical.has(type)
    if (alerter !== undefined) attachAlerts(this.events, { alerter, log: this.#log, isCritical })
  }

  /**
   * Stores one job. When this resolves, the job is as durable as the engine's capabilities say. A job without a payload
   * schema needs no payload: `mill.enqueue(job)`.
   */
  enqueue<Input, Output, Result>(
    job: JobDefinition<Input, Output, Result> | string,
    ...payloadAndOptions: PayloadAndOptions<NoInfer<Input>>
  ): Promise<Enqueued<Result>>
  async enqueue(job: AnyJob | string, payload?: unknown, options: EnqueueWithinOptions = {}): Promise<Receipt> {
    const [receipt] = await this.#enqueueAll(job, [payload], options)
    if (receipt === undefined) throw new Error('the engine returned no receipt for one job')
    return receipt
  }

  /** Stores many jobs of one type in one call. All or none are stored where the engine has `enqueueAtomic`. */
  async enqueueMany<Input, Output, Result>(
    job: JobDefinition<Input, Output, Result> | string,
    payloads: readonly NoInfer<Input>[],
    options: Omit<EnqueueWithinOptions, 'key' | 'latest'> = {},
  ): Promise<readonly Enqueued<Result>[]> {
    refuseOptionsOfOne(options)
    return this.#enqueueAll(job, payloads, options)
  }

  async #enqueueAll(job: AnyJob | string, payloads: readonly unknown[], options: EnqueueWithinOptions) {
    this.#lifetime.assertTakesJobs()
    refuseUnknown(options, ENQUEUE_WITHIN_NAMES, 'enqueue')
    const jobs = await prepareJobs(this.#preparation(), this.#definition(job), payloads, options)
    return this.#store(jobs, options.within)
  }

  /**
   * Stores a chain, a fan-out or a fan-in in one call. Each step's `after` names other steps; cycles are refused. The
   * receipts have the names of the steps.
   */
  async enqueueFlow<const Jobs extends Readonly<Record<string, AnyJob | string>>>(
    flow: Flow<Jobs>,
    options: { readonly within?: Transaction } = {},
  ): Promise<{ readonly [Name in keyof Jobs]: Enqueued<ResultOf<Jobs[Name]>> }> {
    this.#lifetime.assertTakesJobs()
    refuseUnknown(options, WITHIN_NAMES, 'enqueueFlow')
    admitFlow(this.engine)
    const jobs = await prepareFlow(this.#preparation(), flow, (job) => this.#definition(job))
    const receipts = await this.#store([...jobs.values()], options.within)
    return receiptsByName(flow, [...jobs.keys()], receipts)
  }

  #preparation(): Preparation {
    return { engine: this.engine, nowMs: this.#clock.nowMs(), payloadBytesMax: this.#bytesMax }
  }

  async #store(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    if (within !== undefined) admitTransaction(this.engine)
    const store = (traced: readonly NewJob[]) => this.engine.enqueue(traced, within)
    const receipts = await (this.tracing.tracer?.enqueue(jobs, store) ?? store(jobs))
    if (!this.events.hasListener('job.enqueued')) return receipts
    receipts.forEach(({ id, status }, index) => {
      const { type = '', payload = '' } = jobs[index] ?? {}
      this.events.emit('job.enqueued', { id, type, status, bytes: Buffer.byteLength(payload) })
    })
    return receipts
  }

  /** The job as it is now. Null if it is unknown. */
  async job(id: string): Promise<JobView | null> {
    return (await lookupOf(this.engine).find([id]))[0] ?? null
  }

  /** Jobs, newest first. Default limit: 100. */
  async jobs(filter: Partial<JobFilter> = {}): Promise<readonly JobView[]> {
    return lookupOf(this.engine).list(checkFilter({ limit: 100, ...filter }))
  }

  /** Jobs that a search finds, newest first: `mill.search('type:mail error:ECONNREFUSED since:1h')`. */
  async search(text: string, options: SearchOptions = {}): Promise<FoundJobs> {
    return (await searchCode()).search({ ...this.#parts(), definitions: this.#known.values() }, text, options)
  }

  /** The events of a job, oldest first. */
  async history(id: string): Promise<readonly JobEvent[]> {
    return inspectorOf(this.engine).history(id)
  }

  /** What the handler of a job said by `log`, oldest first; `dropped` counts lines that are no longer kept. */
  async logs(id: string): Promise<JobLog> {
    return readLog(await logsOf(this.engine).read(id))
  }

  /**
   * Waits for a job's result. Rejects with `ERR_JOB_DEAD` or `ERR_JOB_ENDED` if there will be none, with
   * `ERR_WAIT_TIMEOUT` after `timeout` (default: 30s), and with the signal's reason when it aborts.
   */
  async result<Result = unknown>(of: string | Enqueued<Result>, wait: ResultWait = {}): Promise<Result> {
    // The store has only JSON; the type comes from the receipt or the caller.
    return (await awaitResult(this.engine, this.#clock, typeof of === 'string' ? of : of.id, wait)) as Result
  }

  /** Cancels a job that has not finished, even while another process runs it. False if it is unknown or finished. */
  async cancel(id: string, by: Partial<Actor> = {}): Promise<boolean> {
    checkActor(by, 'cancel')
    const act = { who: by.who ?? 'api', reason: by.reason ?? 'cancelled' }
    const cancelled = await controlsOf(this.engine).cancel(id, act)
    if (cancelled) this.events.emit('job.cancelled', { id, ...act })
    return cancelled
  }

  /** How many jobs of each type are in each state. */
  async counts(): Promise<Counts> {
    return this.engine.counts()
  }

  /**
   * Pauses a type: no worker of any process starts a job of it until it is resumed. Enqueuing goes on, and running jobs
   * finish. False if it was paused already. The audit records it.
   */
  async pause(type: string, by: Partial<Actor> = {}): Promise<boolean> {
    return pauseType(this.engine, type, by)
  }

  /** Resumes a paused type. False if it was not paused. The audit records it. */
  async resume(type: string, by: Partial<Actor> = {}): Promise<boolean> {
    return resumeType(this.engine, type, by)
  }

  /** The paused types, with who paused them and why. */
  async paused(): Promise<readonly Pause[]> {
    return pausesOf(this.engine).list()
  }

  /** The workers of all processes: what they run and whether they are alive. */
  async workers(): Promise<readonly WorkerView[]> {
    return workersAt(this.engine, this.#clock.nowMs())
  }

  /** Adds an operator's act to the audit: who did what, and why. The mill records its own acts itself. */
  async note(note: Note): Promise<void> {
    await writeNote(this.engine, note)
  }

  /** Starts a worker in this process. It runs until `worker.stop()` or `mill.close()`. */
  async work(jobs: readonly AnyHandledJob[], options: WorkerOptions = {}): Promise<Worker> {
    this.#lifetime.assertOpen()
    for (const type of criticalTypes(jobs)) this.#critical.add(type)
    const parts = { ...this.#parts(), tracing: this.tracing, log: this.#log, resultBytesMax: this.#bytesMax }
    const worker = await heedingSignals(options, async (stop) =>
      (await workerCode()).startWorker(parts, jobs, options, stop),
    )
    return this.#lifetime.remember(worker)
  }

  /**
   * Starts a keeper in this process: schedules, reaping and cleaning up, for workers with `keeper: false`. Any number may
   * run: one leads, the others stand by. It runs until `keeper.stop()` or `mill.close()`.
   */
  async keep(options: KeeperOptions = {}): Promise<Keeper> {
    this.#lifetime.assertOpen()
    const jobs = options.jobs ?? []
    for (const type of criticalTypes(jobs)) this.#critical.add(type)
    const definitions = new Map([...this.#known, ...jobs.map((job) => [job.type, job] as const)])
    const [{ startKeeper }, { newWorkerId }] = await Promise.all([keeperCode(), workerIdCode()])
    const keeper = await startKeeper({ ...this.#parts(), definitions }, options.id ?? newWorkerId(), options)
    return this.#lifetime.remember(keeper)
  }

  /** What workers, keepers and schedules are built from. */
  #parts() {
    const { engine, events } = this
    const prepare: Prepare = async (definition, payload, options) => {
      const [job] = await prepareJobs(this.#preparation(), definition, [payload], options)
      if (job === undefined) throw new Error('one payload became no job')
      return job
    }
    return { engine, events, clock: this.#clock, random: this.#random, redactor: this.#redact, prepare }
  }

  /**
   * Stops the workers and keepers of this mill, then closes the engine. Until the workers have stopped, their handlers can
   * enqueue through this mill. It takes at most the longest `drain` plus 8 s, even when the store does not answer. A
   * second call returns the same promise.
   */
  close(): Promise<void> {
    return this.#lifetime.close(() => this.engine.close())
  }

  /** `await using mill = await open(…)` closes it at the end of the block. */
  [Symbol.asyncDispose] = (): Promise<void> => this.close()

  #definition(job: AnyJob | string): AnyJob {
    const definition = typeof job === 'string' ? this.#known.get(job) : job
    if (definition !== undefined) return definition
    throw new UnknownTypeError(String(job), [...this.#known.keys()])
  }
}
