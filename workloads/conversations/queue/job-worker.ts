import { type Mill, open } from '../../../src/client/mill.ts'
import type { SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import { ClosedError, OptionError } from '../../../src/errors.ts'
import type { Backoff } from '../../../src/job/backoff.ts'
import { type AnyHandledJob, defineJob, type JobContext, type Log } from '../../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import type { Clock } from '../../../src/time/clock.ts'
import type { Worker } from '../../../src/worker/worker.ts'
import { BACKOFF } from './backoff.ts'

/** As a method, so that a handler may declare the payload that it expects. It is the stored one, and not checked. */
export type JobHandler = { handle(payload: unknown, context: JobContext<unknown>): unknown }['handle']

export interface JobWorkerOptions {
  /** A handle of node:sqlite or better-sqlite3. It stays open after `shutdown`. */
  readonly db: SqliteDatabase
  /** By type. Jobs of other types are left to other workers. */
  readonly handlers: Readonly<Record<string, JobHandler>>
  /** How often to look for jobs, in milliseconds; default: 1000. Another process's jobs are noticed sooner. */
  readonly pollInterval?: number
  /** Default: 1, one job at a time. */
  readonly concurrency?: number
  readonly backoff?: Backoff
  /** False: SIGTERM and SIGINT are left to the program. Default: true. */
  readonly signals?: boolean
  readonly clock?: Clock
  readonly log?: Log
  readonly random?: () => number
}

const WORKER_NAMES: OptionNames<JobWorkerOptions> = {
  db: true,
  handlers: true,
  pollInterval: true,
  concurrency: true,
  backoff: true,
  signals: true,
  clock: true,
  log: true,
  random: true,
}

interface Started {
  readonly mill: Mill
  readonly worker: Worker
}

/**
 * A worker of the pipeline, by the names of its design: `mill.work` over a handle of your own. SIGTERM and SIGINT shut it
 * down: it takes no more jobs, waits up to 30 s for those that run, and gives back what is not done. It never ends the
 * process.
 *
 * @example
 * const worker = new JobWorker({ db, handlers: { extract_learning: (payload) => extract(payload) } })
 * await worker.start()
 * await worker.stopped
 */
export class JobWorker {
  /** Resolves when it has shut down, also after a signal. */
  readonly stopped: Promise<void>
  readonly #options: JobWorkerOptions
  readonly #jobs: readonly AnyHandledJob[]
  #starting: Promise<Started> | null = null
  #started: Started | null = null
  #stopping: Promise<void> | null = null
  #resolveStopped: () => void = () => {}

  constructor(options: JobWorkerOptions) {
    refuseUnknown(options, WORKER_NAMES, 'JobWorker')
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
    const { db, pollInterval = 1_000, concurrency = 1, signals = true, clock, log, random } = this.#options
    const mill = await open(db, { ...(clock && { clock }), ...(log && { log }), ...(random && { random }) })
    try {
      const worker = await mill.work(this.#jobs, { poll: pollInterval, concurrency, signals })
      void worker.stopped.then(() => this.shutdown())
      this.#started = { mill, worker }
      return this.#started
    } catch (error) {
      await mill.close()
      throw error
    }
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
    await started.mill.close()
  }
}

function jobsOf({ handlers, backoff = BACKOFF }: JobWorkerOptions): readonly AnyHandledJob[] {
  const named = Object.entries(handlers ?? {})
  if (named.length === 0) throw new OptionError(`'handlers' is empty; give a function for each type to run`)
  return named.map(([type, handle]) => {
    if (typeof handle !== 'function') throw new OptionError(`the handler of '${type}' is no function`)
    return defineJob({ type, backoff, run: (context) => handle(context.payload, context) })
  })
}
