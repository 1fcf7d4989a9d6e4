import type { Receipt, SubscribedType } from '../../../src/engine/engine.ts'
import type { Lease, Outcome } from '../../../src/engine/outcome.ts'
import { claimReady, nextDue } from '../../../src/engines/sqlite/claim.ts'
import type { SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import { listLetters, requeueLetter } from '../../../src/engines/sqlite/dead-letters.ts'
import { insertJobs } from '../../../src/engines/sqlite/enqueue.ts'
import { findRow, listRows, TYPES } from '../../../src/engines/sqlite/inspector.ts'
import { applyKeepLimits } from '../../../src/engines/sqlite/keep-limits.ts'
import { listRecords } from '../../../src/engines/sqlite/records.ts'
import { settleLeases } from '../../../src/engines/sqlite/settle.ts'
import { TenantJobs } from '../../../src/engines/sqlite/tenant-slots.ts'
import { EngineError, MillraceError } from '../../../src/errors.ts'
import { Events } from '../../../src/events.ts'
import type { Backoff } from '../../../src/job/backoff.ts'
import type { Log } from '../../../src/job/definition.ts'
import { keepOf } from '../../../src/job/keep.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { checkListLimit } from '../../../src/job/list-limit.ts'
import { LEASE_DEFAULT_MS, PAYLOAD_BYTES_MAX_DEFAULT } from '../../../src/job/options.ts'
import { encodeResult } from '../../../src/job/payload.ts'
import { decide } from '../../../src/job/policy.ts'
import type { JobState } from '../../../src/job/states.ts'
import { attachLog, silentLog } from '../../../src/observe/log.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { fromIso } from '../../../src/time/iso.ts'
import { newWorkerId } from '../../../src/worker/worker-id.ts'
import { BACKOFF } from './backoff.ts'
import { CREATE_NAMES, type CreateJob, type DeadLetterSummary, type Job, newJobOf, toJob, toSummary } from './job.ts'
import { recoverExpired } from './maintenance.ts'
import { SyncStore } from './sync-store.ts'

export interface RepositoryOptions {
  /** The types that `dequeue` takes; default: every type. A type without a handler here would use up its attempts. */
  readonly types?: readonly string[]
  /** The `lease_owner`; default: host, process and a random suffix. */
  readonly worker?: string
  /** Default: 60 s. A lease is not renewed: settle the job within it. */
  readonly leaseMs?: number
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly log?: Log
  readonly random?: () => number
}

const REPOSITORY_NAMES: OptionNames<RepositoryOptions> = {
  types: true,
  worker: true,
  leaseMs: true,
  backoff: true,
  clock: true,
  log: true,
  random: true,
}

const OPERATOR = { who: 'repository', reason: 'retry' }
const PAGE = 500

interface Held {
  readonly lease: Lease
  readonly sinceMs: number
}

/**
 * The queue of the conversation pipeline over an SQLite handle of node:sqlite or better-sqlite3: synchronous, one job at a
 * time, without a worker. It runs the SQLite engine's own statements, so a mill on the same file sees the same jobs. Each
 * call is one transaction, or joins the one that is open on the handle.
 *
 * @example
 * const queue = new JobQueueRepository(new DatabaseSync('jobs.db'))
 * const job = queue.dequeue()
 * if (job !== null) queue.markCompleted(job.id)
 */
export class JobQueueRepository {
  readonly #store: SyncStore
  readonly #options: RepositoryOptions
  readonly #worker: string
  readonly #log: Log
  readonly #events = new Events()
  readonly #random: () => number
  readonly #held = new Map<string, Held>()

  /** Creates the table `job_queue` where it is missing, and updates that of an older version. */
  constructor(db: SqliteDatabase, options: RepositoryOptions = {}) {
    refuseUnknown(options, REPOSITORY_NAMES, 'JobQueueRepository')
    this.#store = new SyncStore(db, options.clock ?? systemClock)
    this.#options = options
    this.#worker = options.worker ?? newWorkerId()
    this.#log = options.log ?? silentLog
    this.#random = options.random ?? Math.random
    attachLog(this.#events, this.#log)
  }

  /** Throws `ERR_JOB_DUPLICATE` when a live job has the key. */
  create(job: CreateJob): Job {
    const { id, status } = this.#insert(job)
    if (status !== 'duplicate') return this.#existing(id)
    throw new MillraceError(
      'ERR_JOB_DUPLICATE',
      `job ${id} has the key '${job.idempotency_key}'; wait for it or use another key`,
    )
  }

  /** Like `create`, but a duplicate is a result and not an error. */
  enqueueJob(
    type: string,
    payload: unknown,
    idempotencyKey?: string,
  ): { enqueued: true; id: string } | { enqueued: false; reason: 'duplicate' } {
    const key = idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }
    const { id, status } = this.#insert({ type, payload, ...key })
    if (status !== 'duplicate') return { enqueued: true, id }
    this.#log.info('Job not enqueued: a live job has its key', { job_id: id, job_type: type })
    return { enqueued: false, reason: 'duplicate' }
  }

  #insert(job: CreateJob): Receipt {
    refuseUnknown(job, CREATE_NAMES, 'create')
    const { clock, connection } = this.#store
    const nowMs = clock.nowMs()
    const jobs = [newJobOf(job, nowMs)]
    const [receipt] = this.#store.write('enqueue', () => insertJobs(connection, jobs, { nowMs, individually: true }))
    if (receipt === undefined) throw new EngineError('ERR_STORAGE_FAILED', 'no receipt was returned for one job')
    return receipt
  }

  /** Claims the most urgent due job, or null. Paused types are left alone. */
  dequeue(): Job | null {
    this.#store.followClock()
    const lease = this.#claim()
    if (lease === null) return null
    const { job, attempt } = lease
    this.#held.set(job.id, { lease, sinceMs: this.#store.clock.monotonicMs() })
    this.#events.emit('job.claimed', { job, attempt, worker: this.#worker })
    return this.#existing(job.id)
  }

  #claim(): Lease | null {
    const { connection, clock } = this.#store
    const tenantJobs = (type: string): TenantJobs => new TenantJobs(connection, type)
    const opening = () => ({ types: this.#openTypes(), bounds: { max: 1 }, tenantJobs })
    const isReady = (): boolean => nextDue(connection, opening(), clock.nowMs()).ready
    const claim = () => claimReady(connection, { ...opening(), worker: this.#worker, ageingMs: null }, clock.nowMs())
    // Polling an idle queue takes no write lock. A claim makes a dead letter of a job without attempts left, and looks on.
    while (this.#store.read('claim', isReady)) {
      const [lease] = this.#store.write('claim', claim)
      if (lease !== undefined) return lease
    }
    return null
  }

  #openTypes(): readonly SubscribedType[] {
    const { types, leaseMs = LEASE_DEFAULT_MS } = this.#options
    const stored = this.#store.connection.prepare(TYPES).all() as { type: string }[]
    const paused = new Set(listRecords(this.#store, 'pause').map(({ name }) => name))
    const wanted = types ?? stored.map(({ type }) => type)
    return wanted.filter((type) => !paused.has(type)).map((type) => ({ type, leaseMs }))
  }

  /** False if the lease is lost: the job is decided by its next holder, and the result is dropped. */
  markCompleted(id: string, result?: unknown): boolean {
    const held = this.#holding(id)
    const { type, options } = held.lease.job
    return this.#settle(held, {
      kind: 'complete',
      result: encodeResult(type, result, PAYLOAD_BYTES_MAX_DEFAULT),
      durationMs: this.#durationMs(held),
      ...keepOf(options?.keepCompleted, null),
    })
  }

  /**
   * Retries the job after the backoff, or makes it a dead letter after its last attempt. False if the lease is lost. Give
   * the error itself: NonRetryable, RetryAfter, Postpone and Offline have their meaning here too.
   */
  markFailed(id: string, error: unknown): boolean {
    const held = this.#holding(id)
    const { job, attempt } = held.lease
    const failed = {
      attempt,
      attempts: job.attempts,
      backoff: job.options?.backoff ?? this.#options.backoff ?? BACKOFF,
      keepDead: keepOf(job.options?.keepDead, null),
      error: typeof error === 'string' ? new Error(error) : error,
    }
    return this.#settle(held, decide(failed, this.#random))
  }

  #settle(held: Held, outcome: Outcome): boolean {
    const { lease } = held
    const { job, attempt } = lease
    const worker = this.#worker
    const lost = this.#store.write('settle', () => {
      const holder = { connection: this.#store.connection, worker, nowMs: this.#store.clock.nowMs() }
      const settlements = [{ lease, outcome }]
      const lost = settleLeases(holder, settlements, true)
      applyKeepLimits(this.#store, settlements, lost)
      return lost[0]
    })
    this.#held.delete(job.id)
    const about = { job, attempt, worker, started: true }
    if (lost === undefined) this.#events.emit('job.settled', { ...about, outcome, durationMs: this.#durationMs(held) })
    else this.#events.emit('lease.lost', { ...about, reason: lost.reason })
    return lost === undefined
  }

  #durationMs({ sinceMs }: Held): number {
    return Math.round(this.#store.clock.monotonicMs() - sinceMs)
  }

  findById(id: string): Job | null {
    const row = this.#store.read('find', () => findRow(this.#store, id))
    return row === undefined ? null : toJob(row)
  }

  /** Newest first. */
  findByStatus(status: JobState, limit = 100): readonly Job[] {
    const filter = { state: status, limit: checkListLimit(limit) }
    return this.#store.read('list', () => listRows(this.#store.connection, filter)).map(toJob)
  }

  /** Newest first. */
  findByType(type: string, limit = 100): readonly Job[] {
    const filter = { type, limit: checkListLimit(limit) }
    return this.#store.read('list', () => listRows(this.#store.connection, filter)).map(toJob)
  }

  /** The last that died first. */
  getDeadLetterJobs(limit = 100): readonly Job[] {
    const filter = { limit: checkListLimit(limit) }
    return this.#store.read('dead letters', () => listLetters(this.#store, filter)).map(toJob)
  }

  /** The latest 100, for operators: without payloads. */
  inspectDeadLetterQueue(): readonly DeadLetterSummary[] {
    return this.getDeadLetterJobs().map(toSummary)
  }

  /** False unless the job is a dead letter whose key is free. The audit records it. */
  retryDeadLetterJob(id: string): boolean {
    const retried = this.#store.write('replay', () => requeueLetter(this.#store, id, OPERATOR))
    if (retried) this.#log.info('Dead letter retried', { job_id: id })
    return retried
  }

  /** How many went back to the queue. */
  retryDeadLetterJobsByType(type: string): number {
    let count = 0
    let after: { completedAtMs: number; id: string } | undefined
    do {
      const page = { type, limit: PAGE, ...(after !== undefined && { after }) }
      const letters = this.#store.read('dead letters', () => listLetters(this.#store, page))
      const retry = () => letters.filter(({ id }) => requeueLetter(this.#store, id, OPERATOR)).length
      count += letters.length === 0 ? 0 : this.#store.write('replay', retry)
      const last = letters.length < PAGE ? undefined : letters.at(-1)
      after = last && { completedAtMs: fromIso(last.completed_at ?? ''), id: last.id }
    } while (after !== undefined)
    this.#log.info('Dead letters retried', { job_type: type, count })
    return count
  }

  /** Jobs with expired leases are retried after the backoff, or become dead letters after their last attempt. */
  releaseExpiredLeases(): number {
    const { backoff = BACKOFF } = this.#options
    return recoverExpired(this.#store, { worker: this.#worker, random: this.#random, events: this.#events, backoff })
  }

  #holding(id: string): Held {
    const held = this.#held.get(id)
    if (held !== undefined) return held
    throw new MillraceError('ERR_LEASE_LOST', `job ${id} is not held here; dequeue it first`)
  }

  #existing(id: string): Job {
    const job = this.findById(id)
    if (job === null) throw new MillraceError('ERR_JOB_UNKNOWN', `job ${id} is gone`)
    return job
  }
}
