import type { Consumer, Engine } from '../../../src/engine/engine.ts'
import type { Lease } from '../../../src/engine/outcome.ts'
import { EngineError, MillraceError } from '../../../src/errors.ts'
import { Events } from '../../../src/events.ts'
import { type Backoff, backoffMs } from '../../../src/job/backoff.ts'
import { redact } from '../../../src/job/error-record.ts'
import type { JobView } from '../../../src/job/job.ts'
import { newJobId } from '../../../src/job/job.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import {
  ATTEMPTS_DEFAULT,
  checkAttempts,
  checkKey,
  checkPriority,
  LEASE_DEFAULT_MS,
  PRIORITY_DEFAULT,
} from '../../../src/job/options.ts'
import { encodeUnchecked } from '../../../src/job/payload.ts'
import { decide } from '../../../src/job/policy.ts'
import type { JobState } from '../../../src/job/states.ts'
import { reapOnce } from '../../../src/keeper/reaper.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'

/** 2 s, 4 s, 8 s … 60 s, each with up to a second more. */
const BACKOFF: Backoff = { kind: 'exponential', base: '1s', max: '60s', firstExponent: 1, jitter: { add: '1s' } }

/** min(1000 × 2^attempts, 60000) ms, plus up to a second. */
export function calculateBackoff(attempts: number, random: () => number = Math.random): number {
  return backoffMs(BACKOFF, attempts, random)
}

export interface CreateJob {
  readonly type: string
  readonly payload: unknown
  readonly idempotencyKey?: string
  readonly priority?: number
  readonly maxRetries?: number
}

const CREATE_NAMES: OptionNames<CreateJob> = {
  type: true,
  payload: true,
  idempotencyKey: true,
  priority: true,
  maxRetries: true,
}

export interface RepositoryOptions {
  /** The types that `dequeue` takes: a worker without the handler must not use up a job's attempts. */
  readonly types: readonly string[]
  readonly worker: string
  readonly leaseMs?: number
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
}

const REPOSITORY_NAMES: OptionNames<RepositoryOptions> = {
  types: true,
  worker: true,
  leaseMs: true,
  backoff: true,
  clock: true,
  random: true,
}

const NO_WAIT = new AbortController().signal
const OPERATOR = { who: 'repository', reason: 'retry' }

/**
 * The queue of the conversation pipeline: one job at a time, without a worker.
 * Everything goes through the engine's port, so completions are fenced here too.
 */
export class JobQueueRepository {
  readonly #engine: Engine
  readonly #options: RepositoryOptions
  readonly #clock: Clock
  readonly #held = new Map<string, Lease>()
  #consumer: Promise<Consumer> | null = null

  constructor(engine: Engine, options: RepositoryOptions) {
    refuseUnknown(options, REPOSITORY_NAMES, 'JobQueueRepository')
    this.#engine = engine
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** Throws `ERR_JOB_DUPLICATE` when a live job has the key. */
  async create(job: CreateJob): Promise<JobView> {
    refuseUnknown(job, CREATE_NAMES, 'create')
    const receipt = await this.#insert(job)
    if (receipt.status === 'duplicate') {
      throw new MillraceError(
        'ERR_JOB_DUPLICATE',
        `job ${receipt.id} has the key '${job.idempotencyKey}'; wait for it or use another key`,
      )
    }
    return this.#existing(receipt.id)
  }

  /** Like `create`, but a duplicate is a result and not an error. */
  async enqueueJob(
    type: string,
    payload: unknown,
    idempotencyKey?: string,
  ): Promise<{ enqueued: true; id: string } | { enqueued: false; reason: 'duplicate' }> {
    const receipt = await this.#insert({ type, payload, ...(idempotencyKey !== undefined && { idempotencyKey }) })
    return receipt.status === 'duplicate'
      ? { enqueued: false, reason: 'duplicate' }
      : { enqueued: true, id: receipt.id }
  }

  async #insert(job: CreateJob) {
    const payload = encodeUnchecked(job.type, job.payload)
    const [receipt] = await this.#engine.enqueue([
      {
        id: newJobId(this.#clock.nowMs()),
        type: job.type,
        payload,
        payloadVersion: 1,
        priority: checkPriority(job.priority ?? PRIORITY_DEFAULT),
        attempts: checkAttempts(job.maxRetries ?? ATTEMPTS_DEFAULT),
        delayMs: 0,
        runAtMs: null,
        key: job.idempotencyKey === undefined ? null : checkKey(job.idempotencyKey, 'key'),
        latest: null,
        tenant: null,
        options: null,
        after: null,
      },
    ])
    if (receipt === undefined) throw new EngineError('ERR_STORAGE_FAILED', 'the engine returned no receipt for one job')
    return receipt
  }

  /** Claims the most urgent due job, or null. */
  async dequeue(): Promise<JobView | null> {
    const consumer = await this.#consume()
    const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: NO_WAIT })
    if (lease === undefined) return null
    this.#held.set(lease.job.id, lease)
    return this.#existing(lease.job.id)
  }

  /** False if the lease is lost: another holder decides then. */
  async markCompleted(id: string, result: unknown = null): Promise<boolean> {
    const lease = this.#lease(id)
    const durationMs = this.#clock.nowMs() - ((lease.expiresAtMs ?? 0) - this.#leaseMs())
    return this.#settle(lease, { kind: 'complete', result: JSON.stringify(result) ?? 'null', durationMs })
  }

  /** Retries after the backoff, or makes a dead letter after the last attempt. False if the lease is lost. */
  async markFailed(id: string, error: unknown): Promise<boolean> {
    const lease = this.#lease(id)
    const backoff = this.#options.backoff ?? BACKOFF
    const failed = { attempt: lease.attempt, attempts: lease.job.attempts, backoff, error }
    return this.#settle(lease, decide(failed, this.#options.random ?? Math.random))
  }

  async #settle(lease: Lease, outcome: Parameters<Consumer['settle']>[0][number]['outcome']): Promise<boolean> {
    const lost = await (await this.#consume()).settle([{ lease, outcome }])
    this.#held.delete(lease.job.id)
    return lost.length === 0
  }

  async findById(id: string): Promise<JobView | null> {
    return (await this.#engine.inspector?.find([id]))?.[0] ?? null
  }

  async findByStatus(state: JobState, limit = 100): Promise<readonly JobView[]> {
    return (await this.#engine.inspector?.list({ state, limit })) ?? []
  }

  async findByType(type: string, limit = 100): Promise<readonly JobView[]> {
    return (await this.#engine.inspector?.list({ type, limit })) ?? []
  }

  /** Newest first. */
  async getDeadLetterJobs(limit = 100): Promise<readonly JobView[]> {
    return (await this.#engine.deadLetters?.list({ limit }))?.map((letter) => letter.job) ?? []
  }

  /** For operators, without payloads. */
  async inspectDeadLetterQueue(): Promise<
    readonly Pick<JobView, 'id' | 'type' | 'attempt' | 'error' | 'createdAtMs' | 'completedAtMs'>[]
  > {
    const jobs = await this.getDeadLetterJobs(100)
    return jobs.map(({ id, type, attempt, error, createdAtMs, completedAtMs }) => ({
      id,
      type,
      attempt,
      error,
      createdAtMs,
      completedAtMs,
    }))
  }

  /** False unless the job is a dead letter. */
  async retryDeadLetterJob(id: string): Promise<boolean> {
    return (await this.#engine.deadLetters?.requeue([id], OPERATOR))?.[0] ?? false
  }

  /** How many went back to the queue. */
  async retryDeadLetterJobsByType(type: string): Promise<number> {
    const page = 500
    let retried = 0
    for (;;) {
      const letters = (await this.#engine.deadLetters?.list({ type, limit: page })) ?? []
      const ids = letters.map(({ job }) => job.id)
      const done = (await this.#engine.deadLetters?.requeue(ids, OPERATOR)) ?? []
      const moved = done.filter((isDone) => isDone).length
      retried += moved
      if (letters.length < page || moved === 0) return retried
    }
  }

  /** Jobs with expired leases are retried after the backoff, or become dead letters after their last attempt. */
  async releaseExpiredLeases(): Promise<number> {
    const { retried, dead } = await reapOnce({
      engine: this.#engine,
      definitions: new Map(),
      clock: this.#clock,
      random: this.#options.random ?? Math.random,
      redactor: redact,
      events: new Events(),
      worker: this.#options.worker,
    })
    return retried + dead
  }

  async close(): Promise<void> {
    await (await this.#consumer)?.close()
  }

  #leaseMs(): number {
    return this.#options.leaseMs ?? LEASE_DEFAULT_MS
  }

  #consume(): Promise<Consumer> {
    const types = this.#options.types.map((type) => ({ type, leaseMs: this.#leaseMs() }))
    this.#consumer ??= this.#engine.consume({ types, worker: this.#options.worker })
    return this.#consumer
  }

  #lease(id: string): Lease {
    const lease = this.#held.get(id)
    if (lease !== undefined) return lease
    throw new MillraceError('ERR_LEASE_LOST', `job ${id} is not held here; dequeue it first`)
  }

  async #existing(id: string): Promise<JobView> {
    const view = await this.findById(id)
    if (view === null) throw new MillraceError('ERR_JOB_UNKNOWN', `job ${id} is gone`)
    return view
  }
}
