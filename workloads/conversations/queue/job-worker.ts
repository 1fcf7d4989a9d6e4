import { open } from '../../../src/client/mill.ts'
import type { SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import { ClosedError, OptionError } from '../../../src/errors.ts'
import type { Backoff } from '../../../src/job/backoff.ts'
import { type AnyHandledJob, defineJob, type JobContext, type Log } from '../../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import type { Clock } from '../../../src/time/clock.ts'
import type { WorkerOptions } from '../../../src/worker/options.ts'
import type { Worker } from '../../../src/worker/worker.ts'
import { CONVERSATIONS_ENGINE } from '../store/engine-default.ts'
import { BACKOFF } from './backoff.ts'

/** As a method, so that a handler may declare the payload that it expects. It is the stored one, and not checked. */
export type JobHandler = { handle(payload: unknown, context: JobContext<unknown>): unknown }['handle']

export interface JobWorkerOptions {
  /** A handle of node:sqlite or better-sqlite3, for `handlers`. It stays open after `shutdown`. */
  readonly db?: SqliteDatabase
  /** Without `db`: a `sqlite:` URL; default: `MILLRACE_ENGINE`, otherwise `sqlite:~/.millrace/conversations.db`. */
  readonly engine?: string
  /** By type. Jobs of other types are left to other workers. Default: the pipeline's own three, configured by its file. */
  readonly handlers?: Readonly<Record<string, JobHandler>>
  /** How often to look for jobs, in milliseconds; default: 1000. Another process's jobs are noticed sooner. */
  readonly pollInterval?: number
  /** Default: 1, one job at a time. */
  readonly concurrency?: number
  /** Of `handlers`. */
  readonly backoff?: Backoff
  /** False: SIGTERM and SIGINT are left to the program. Default: true. */
  readonly signals?: boolean
  readonly clock?: Clock
  readonly log?: Log
  /** Of `handlers`: the jitter of retries. */
  readonly random?: () => number
}

const WORKER_NAMES: OptionNames<JobWorkerOptions> = {
  db: true,
  engine: true,
  handlers: true,
  pollInterval: true,
  concurrency: true,
  backoff: true,
  signals: true,
  clock: true,
  log: true,
  random: true,
}

/** What runs the jobs. */
interface Runner {
  work(options: WorkerOptions): Promise<Worker>
  close(): Promise<void>
}

interface Started {
  readonly runner: Runner
  readonly worker: Worker
}

/**
 * A worker by the names of the pipeline's design: it runs your handlers, or without `handlers` the pipeline. SIGTERM and
 * SIGINT shut it down: it takes no more jobs, waits up to 30 s for those that run, and gives back what is not done. It
 * never ends the process.
 *
 * @example
 * const worker = new JobWorker({ db, handlers: { extract_learning: (payload) => extract(payload) }, pollInterval: 100 })
 * await worker.start()
 * await worker.stopped
 */
export class JobWorker {
  /** Resolves when it has shut down, also after a signal. */
  readonly stopped: Promise<void>
  readonly #options: JobWorkerOptions
  /** Null: the pipeline's. */
  readonly #jobs: readonly AnyHandledJob[] | null
  #starting: Promise<Started> | null = null
  #started: Started | null = null
  #stopping: Promise<void> | null = null
  #resolveStopped: () => void = () => {}

  constructor(options: JobWorkerOptions = {}) {
    refuseUnknown(options, WORKER_NAMES, 'JobWorker')
    if (options.db !== undefined && options.engine !== undefined)
      throw new OptionError(`'db' and 'engine' both say where the jobs are; give one of them`)
    if (options.db !== undefined && options.handlers === undefined)
      throw new OptionError(`the pipeline opens its own connection; give 'engine' instead of 'db', or 'handlers'`)
    this.#options = options
    this.#jobs = jobsOf(options)
    this.stopped = new Promise((resolve) => {
      this.#resolveStopped = resolve
    })
  }

  /** Resolves once jobs are taken; they run in the background. A second call returns the same promise. */
  async start(): Promise<void> {
    if (this.#stopping !== null) throw new ClosedError('this worker')
    this.#starting ??= this.#start()
    await this.#starting
  }

  async #start(): Promise<Started> {
    const { pollInterval = 1_000, concurrency = 1, signals = true } = this.#options
    const runner = this.#jobs === null ? await this.#pipeline() : await this.#own(this.#jobs)
    try {
      const worker = await runner.work({ poll: pollInterval, concurrency, signals })
      void worker.stopped.then(() => this.shutdown())
      this.#started = { runner, worker }
      return this.#started
    } catch (error) {
      await runner.close()
      throw error
    }
  }

  async #own(jobs: readonly AnyHandledJob[]): Promise<Runner> {
    const { db, clock, log, random } = this.#options
    const target = db ?? this.#engine()
    const mill = await open(target, { ...(clock && { clock }), ...(log && { log }), ...(random && { random }) })
    return { work: (options) => mill.work(jobs, options), close: () => mill.close() }
  }

  async #pipeline(): Promise<Runner> {
    const { clock, log } = this.#options
    // Only here: handlers of one's own need neither the models nor the chain.
    const [{ openConversations }, { loadConfig }] = await Promise.all([
      import('../pipeline.ts'),
      import('../config.ts'),
    ])
    return openConversations({ ...loadConfig(), engine: this.#engine(), ...(clock && { clock }), ...(log && { log }) })
  }

  #engine(): string {
    // An empty variable names nothing.
    return this.#options.engine ?? (process.env.MILLRACE_ENGINE || CONVERSATIONS_ENGINE)
  }

  /** Resolves when nothing runs here any more. A second call returns the same promise. `signal` is for the log. */
  shutdown(signal = 'shutdown'): Promise<void> {
    this.#stopping ??= this.#shutdown(signal).finally(this.#resolveStopped)
    return this.#stopping
  }

  async #shutdown(signal: string): Promise<void> {
    // The caller of `start` has its error.
    const started = this.#started ?? (await this.#starting?.catch(() => null))
    if (started === null || started === undefined) return
    await started.worker.stop(signal)
    await started.runner.close()
  }
}

function jobsOf({ handlers, backoff = BACKOFF }: JobWorkerOptions): readonly AnyHandledJob[] | null {
  if (handlers === undefined) return null
  const named = Object.entries(handlers)
  if (named.length === 0) throw new OptionError(`'handlers' is empty; give a function for each type to run`)
  return named.map(([type, handle]) => {
    if (typeof handle !== 'function') throw new OptionError(`the handler of '${type}' is no function`)
    return defineJob({ type, backoff, run: (context) => handle(context.payload, context) })
  })
}
