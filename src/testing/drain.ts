import type { Enqueued, Mill } from '../client/mill.ts'
import { inspectorOf } from '../engine/capability-checks.ts'
import type { Outcome } from '../engine/outcome.ts'
import { MillraceError, OptionError, UnknownJobError, WaitTimeoutError } from '../errors.ts'
import type { AnyHandledJob } from '../job/definition.ts'
import type { JobView } from '../job/job.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { isFinished } from '../job/states.ts'
import { systemClock } from '../time/clock.ts'
import { DURATION_MS_MAX, type Duration, parseDurationMs } from '../time/duration.ts'
import type { Worker } from '../worker/worker.ts'
import { newWorkerId } from '../worker/worker-id.ts'

export interface DrainOptions {
  /** Starts after which `drain` gives up on a queue that never gets empty. Default: 1000. */
  readonly max?: number
  /** Bound in real time, whatever clock the mill has. Default: 10s. */
  readonly timeout?: Duration
  /** Handlers at once. Default: 1, so that jobs run one after the other, in the order of the queue. */
  readonly concurrency?: number
}

/** How many starts ended in each way. */
export type Drained = Readonly<Record<Outcome['kind'], number>>

/**
 * Runs every job of these definitions that is due, and those that become due by it, until none is ready; then the
 * worker is gone again. What is delayed, retries with a backoff included, stays until the clock has moved and `drain`
 * is called again.
 *
 * Rejects when `max` or `timeout` is reached: a job that enqueues itself for ever, a handler that waits for a clock which
 * nobody moves, or a rate limit that holds jobs back.
 *
 * @example
 * await mill.enqueue(greet, { name: 'Ann' })
 * assert.equal((await drain(mill, [greet])).complete, 1)
 */
export async function drain(mill: Mill, jobs: readonly AnyHandledJob[], options: DrainOptions = {}): Promise<Drained> {
  refuseUnknown(options, { max: true, timeout: true, concurrency: true }, 'drain')
  const { max = 1_000, concurrency = 1 } = options
  if (!Number.isInteger(max) || max < 1) throw new OptionError(`'max' is ${max}; give a whole number from 1`)
  const timeoutMs = parseDurationMs(options.timeout ?? '10s', 'timeout')
  const pass = new Draining(mill, jobs, max)
  const over = new AbortController()
  const timeout = systemClock.sleep(timeoutMs, over.signal).then(() => {
    if (!over.signal.aborted) throw pass.timedOut(timeoutMs)
  })
  try {
    await Promise.race([pass.run(concurrency), timeout])
  } finally {
    over.abort()
    pass.close()
  }
  return pass.drained
}

/** So many failed claims in a row are no passing fault. */
const CLAIM_FAILURES_MAX = 10

/** Jobs of these types by what matters here. */
interface Standing {
  readonly ready: number
  readonly inProgress: number
}

class Draining {
  readonly drained: Record<Outcome['kind'], number> = { complete: 0, retry: 0, dead: 0, release: 0 }
  readonly #mill: Mill
  readonly #jobs: readonly AnyHandledJob[]
  readonly #max: number
  readonly #stopListening: readonly (() => void)[]
  /** Known before the worker is: it claims before `work` resolves. */
  readonly #id = newWorkerId()
  #worker: Worker | null = null
  #held = 0
  #started = 0
  #failure: unknown = null
  #claimFailed = false
  #claimFailures = 0
  #closed = false
  #standing: Standing = { ready: 0, inProgress: 0 }
  #wake: () => void = () => {}

  constructor(mill: Mill, jobs: readonly AnyHandledJob[], max: number) {
    const { events } = mill
    this.#mill = mill
    this.#jobs = jobs
    this.#max = max
    const isOwn = ({ worker }: { readonly worker: string }): boolean => worker === this.#id
    this.#stopListening = [
      events.on('job.claimed', (event) => isOwn(event) && this.#note(1)),
      events.on('job.settled', (event) => {
        if (!isOwn(event)) return
        this.drained[event.outcome.kind] += 1
        this.#note(-1)
      }),
      events.on('lease.lost', (event) => isOwn(event) && this.#note(-1)),
      events.on('worker.error', (event) => {
        if (!isOwn(event)) return
        this.#failure = event.error
        if (event.during === 'claim') {
          this.#claimFailed = true
          this.#claimFailures += 1
        }
        this.#note(0)
      }),
    ]
  }

  /** One worker after the other: one whose claim failed would wait for the clock before it asks again. */
  async run(concurrency: number): Promise<void> {
    for (let before = await this.#look(); before.ready > 0 && !this.#closed; before = await this.#look()) {
      if (this.#claimFailures > CLAIM_FAILURES_MAX) throw this.#failure
      this.#claimFailed = false
      this.#held = 0
      // The wake-ups of the engine are enough here; a poll or a reaper would only wait on the test's clock.
      this.#worker = await this.#mill.work(this.#jobs, { id: this.#id, concurrency, poll: '1d', keeper: false })
      await this.#untilIdle(before.inProgress)
      await this.#worker.stop('drain')
    }
  }

  /** Nothing is ready, nothing is held, and nothing is on its way here from a claim. */
  async #untilIdle(foreign: number): Promise<void> {
    while (!this.#claimFailed || this.#held > 0) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      const { ready, inProgress } = await this.#look()
      if (this.#started > this.#max) throw this.#endless()
      if (ready === 0 && this.#held === 0 && inProgress <= foreign) return
      await changed
    }
  }

  async #look(): Promise<Standing> {
    const counts = await this.#mill.counts()
    const own = this.#jobs.flatMap(({ type }) => counts[type] ?? [])
    const sum = (of: (each: Standing) => number): number => own.reduce((total, each) => total + of(each), 0)
    this.#standing = { ready: sum(({ ready }) => ready), inProgress: sum(({ inProgress }) => inProgress) }
    return this.#standing
  }

  #note(held: 1 | 0 | -1): void {
    this.#held += held
    if (held === 1) {
      this.#started += 1
      this.#claimFailures = 0
    }
    this.#wake()
  }

  /** After a rejection the worker is told to stop and not waited for: it may need a clock that only the test moves. */
  close(): void {
    this.#closed = true
    for (const stop of this.#stopListening) stop()
    void this.#worker?.stop('drain')
  }

  timedOut(timeoutMs: number): Error {
    const { ready } = this.#standing
    const hint = 'move the clock if a handler, a settle or a rate limit waits for it'
    const error = new WaitTimeoutError(`draining (${ready} ready, ${this.#held} held; ${hint})`, timeoutMs)
    if (this.#failure !== null) error.cause = this.#failure
    return error
  }

  #endless(): Error {
    const hint = `raise 'max', or look for a job that enqueues itself`
    return new MillraceError('ERR_WAIT_TIMEOUT', `more than ${this.#max} starts did not drain the queue; ${hint}`)
  }
}

/**
 * Waits until a job is completed, dead or ended, and resolves with it: unlike `mill.result` a failure is an answer here.
 * The bound is real time (default: 5s), because a test clock that stands still would never give up.
 *
 * @example
 * const job = await settled(mill, receipt)
 * assert.equal(job.state, 'dead_letter')
 */
export async function settled(
  mill: Mill,
  of: string | Enqueued<unknown>,
  wait: { readonly timeout?: Duration } = {},
): Promise<JobView> {
  const id = typeof of === 'string' ? of : of.id
  const timeoutMs = parseDurationMs(wait.timeout ?? '5s', 'timeout')
  const abort = new AbortController()
  const cancelTimer = systemClock.after(timeoutMs, () => abort.abort())
  try {
    const view = await inspectorOf(mill.engine).waitFor(id, { waitMs: DURATION_MS_MAX, signal: abort.signal })
    if (view === null) throw new UnknownJobError(id)
    if (isFinished(view.state)) return view
    const facts = `${view.state}, starts so far: ${view.attempt}; it needs a worker, or a clock that is moved on`
    throw new WaitTimeoutError(`the end of job ${id} (${facts})`, timeoutMs)
  } finally {
    cancelTimer()
  }
}
