// Longer than 300 lines because every rule about a job's state is in this one class, which the other engines are compared with.
import type { Actor, DeadLetterFilter, PayloadEdit } from '../../engine/dead-letters.ts'
import type { Counts, JobFilter, Receipt, SubscribedType } from '../../engine/engine.ts'
import { RecordTable } from '../../engine/memory-records.ts'
import type { Lease, LostReason, Outcome } from '../../engine/outcome.ts'
import { OptionError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { Ended } from '../../job/states.ts'
import { Backlog, type Demand } from './backlog.ts'
import { StoreClock } from './clock.ts'
import { DeadLetterStore } from './dead-letters.ts'
import { Dependencies, eachRedirected } from './dependencies.ts'
import { type LatestKey, LatestKeys } from './latest-keys.ts'
import { type ExpiredDemand, Leases } from './leases.ts'
import {
  type Claimant,
  isDead,
  isDueBefore,
  isFinished,
  type JobRow,
  newRow,
  record,
  resetForReplay,
  toView,
} from './rows.ts'
import { JobTable } from './table.ts'
import { Wakeups } from './wakeups.ts'

export interface MemoryStoreOptions {
  /** How many completed, cancelled and superseded jobs stay. Default: 10 000. */
  readonly finishedMax?: number
}

/**
 * The jobs and every rule about them, without a clock, a timer or a promise: each method is one atomic step at the given
 * time. Engines over the same store see the same jobs. Random tests compare the other engines with this one.
 */
export class MemoryStore {
  readonly wakeups = new Wakeups()
  readonly records = new RecordTable()
  readonly deadLetters: DeadLetterStore
  readonly clock: StoreClock
  readonly #table: JobTable
  readonly #latest: LatestKeys
  readonly #leases = new Leases()
  readonly #backlog = new Backlog(this.#leases)
  readonly #dependencies: Dependencies
  #arrivals = 0

  constructor(options: MemoryStoreOptions = {}) {
    const finishedMax = options.finishedMax ?? 10_000
    if (!(finishedMax >= 0)) throw new OptionError(`'finishedMax' is ${finishedMax}; give a number from 0`)
    this.#table = new JobTable(finishedMax)
    this.#latest = new LatestKeys(finishedMax)
    this.#dependencies = new Dependencies({ table: this.#table, backlog: this.#backlog, wakeups: this.wakeups })
    this.deadLetters = new DeadLetterStore(this.#table, this.#latest, this.#dependencies)
    this.clock = new StoreClock(this, { table: this.#table, backlog: this.#backlog, leases: this.#leases })
  }

  find(id: string): JobRow | null {
    return this.#table.get(id)
  }

  /** Newest first. */
  list(filter: JobFilter): readonly JobRow[] {
    return this.#table.list(filter)
  }

  /** Last died first. */
  dead(filter: DeadLetterFilter): readonly JobRow[] {
    return this.#table.dead(filter)
  }

  counts(nowMs: number): Counts {
    return this.#table.counts(nowMs)
  }

  /** Jobs of the type that are queued or in progress, without walking them as `counts` does. */
  live(type: string): number {
    return this.#table.live(type)
  }

  /** Null when the latest key was never used, or was idle for too long. */
  latest(type: string, key: string): Readonly<LatestKey> | null {
    return this.#latest.get(type, key)
  }

  enqueue(jobs: readonly NewJob[], nowMs: number): readonly Receipt[] {
    this.#dependencies.check(jobs, (job) => this.#latest.nextSeq(job) === 'stale')
    const receipts = eachRedirected(jobs, (job) => this.#enqueueOne(job, nowMs))
    this.wakeups.wakeClaims()
    return receipts
  }

  #enqueueOne(job: NewJob, nowMs: number): Receipt {
    const known = this.#table.get(job.id) ?? this.#table.liveOf(job.key)
    if (known !== null) return { id: known.job.id, status: 'duplicate' }
    const seq = this.#latest.nextSeq(job)
    if (seq === 'stale') return { id: job.id, status: 'stale' }

    this.#arrivals += 1
    const dueMs = job.runAtMs ?? nowMs + job.delayMs
    const row = newRow(job, { dueMs, arrival: this.#arrivals, seq }, nowMs)
    this.#table.add(row)
    this.#dependencies.link(row)
    const older = this.#latest.add(row)?.queued ?? null
    if (older !== null) this.#replace(older, row, nowMs)
    record(row, 'enqueued', nowMs)
    this.#queue(row)
    return { id: job.id, status: older === null ? 'enqueued' : 'replaced' }
  }

  /** The newer version takes the earlier of the two places, so that frequent updates cannot starve a key. */
  #replace(older: JobRow, newer: JobRow, nowMs: number): void {
    if (isDueBefore(older, newer)) {
      newer.dueMs = older.dueMs
      newer.arrival = older.arrival
    }
    this.#end(older, 'superseded', nowMs, { by: newer.job.id })
  }

  /** Claimable when due, but never while another version of its latest key is running (I4). */
  #queue(row: JobRow): void {
    row.state = 'queued'
    const key = this.#latest.of(row)
    if (key !== null) key.queued = row
    if (row.waitingFor === 0 && (key === null || key.running === null)) this.#backlog.add(row)
    this.wakeups.markQueued()
  }

  /** Claims of limited types are counted from here on. */
  watchLimits(types: readonly SubscribedType[]): void {
    this.#backlog.watchLimits(types)
  }

  claim(demand: Demand, claimant: Claimant, nowMs: number): readonly Lease[] {
    return this.#backlog.take(demand, nowMs).map(({ row, leaseMs }) => {
      const key = this.#latest.of(row)
      if (key !== null) {
        key.queued = null
        key.running = row
      }
      row.state = 'in_progress'
      row.attempt += 1
      row.startedAtMs = nowMs
      record(row, 'started', nowMs, { worker: claimant.worker })
      return this.#leases.hold(row, leaseMs, claimant, nowMs)
    })
  }

  /** When `claim` may find something, if nothing is queued meanwhile. */
  nextClaimMs(demand: Demand, nowMs: number): number {
    return this.#backlog.nextMs(demand, nowMs)
  }

  /** Hands jobs with an expired lease to a reaper. The lost claim already counted the start. */
  claimExpired(demand: ExpiredDemand, claimant: Claimant, nowMs: number): readonly Lease[] {
    return this.#leases.expired(demand, nowMs).map(({ row, leaseMs }) => {
      record(row, 'expired', nowMs, { worker: row.held?.worker ?? null })
      return this.#leases.hold(row, leaseMs, claimant, nowMs)
    })
  }

  /** When `claimExpired` may find something, if no lease is renewed meanwhile. */
  nextExpiryMs(demand: ExpiredDemand): number {
    return this.#leases.nextExpiryMs(demand)
  }

  /** Null when it was extended. */
  renew(lease: Lease, leaseMs: number, nowMs: number): LostReason | null {
    return this.#leases.extend(lease, leaseMs, nowMs) ? null : this.#lossOf(lease)
  }

  report(lease: Lease, progress: string, nowMs: number): boolean {
    const row = this.#leases.heldBy(lease, nowMs)
    if (row === null) return false
    row.progress = progress
    row.updatedAtMs = nowMs
    return true
  }

  /** Null when it was applied. The caller wakes claims when its batch is complete. */
  settle(lease: Lease, outcome: Outcome, nowMs: number): LostReason | null {
    const row = this.#leases.heldBy(lease, nowMs)
    if (row === null) return this.#lossOf(lease)
    this.#apply(row, outcome, nowMs)
    return null
  }

  #apply(row: JobRow, outcome: Outcome, nowMs: number): void {
    const worker = row.held?.worker ?? null
    switch (outcome.kind) {
      case 'complete':
        row.result = outcome.result
        row.durationMs = outcome.durationMs
        row.error = null
        record(row, 'completed', nowMs, { worker, detail: { durationMs: outcome.durationMs } })
        this.#finish(row, 'completed', nowMs)
        break
      case 'retry':
      case 'dead':
        row.error = outcome.error
        record(row, 'failed', nowMs, { worker, detail: { error: outcome.error } })
        this.#giveBack(row, nowMs, outcome)
        break
      case 'release':
        row.attempt -= 1
        record(row, 'released', nowMs, { worker, detail: { reason: outcome.reason, delayMs: outcome.delayMs } })
        this.#giveBack(row, nowMs, outcome)
        break
      default:
        outcome satisfies never
    }
  }

  /** For a start that did not complete. */
  #giveBack(row: JobRow, nowMs: number, outcome: Exclude<Outcome, { kind: 'complete' }>): void {
    const newest = this.#latest.of(row)?.queued ?? null
    if (newest !== null) {
      // A newer version waits: running this one again would put it after the newer (I4).
      this.#end(row, 'superseded', nowMs, { by: newest.job.id })
    } else if (outcome.kind === 'dead') {
      record(row, 'dead', nowMs)
      this.#finish(row, 'dead_letter', nowMs)
    } else {
      if (outcome.kind === 'retry') record(row, 'retried', nowMs, { detail: { delayMs: outcome.delayMs } })
      // A release without a delay keeps its place: a stopping worker is not the job's fault.
      const keepsPlace = outcome.kind === 'release' && outcome.delayMs === 0
      // It was due: that the clock was set back meanwhile must not hold it up.
      row.dueMs = keepsPlace ? Math.min(row.dueMs, nowMs) : nowMs + outcome.delayMs
      row.startedAtMs = null
      this.#endLease(row)
      this.#queue(row)
    }
  }

  /** The row no longer runs; the version that waited for it may. */
  #endLease(row: JobRow): void {
    if (row.held !== null && this.#backlog.hasSlots(row.job.type)) this.wakeups.markQueued()
    this.#leases.release(row)
    const key = this.#latest.of(row)
    if (key === null || key.running !== row) return
    key.running = null
    if (key.queued === null) return
    this.#backlog.add(key.queued)
    this.wakeups.markQueued()
  }

  #end(row: JobRow, ended: Ended, nowMs: number, detail: Readonly<Record<string, unknown>> | null = null): void {
    record(row, ended, nowMs, { worker: row.held?.worker ?? null, detail })
    row.ended = ended
    this.#finish(row, 'dead_letter', nowMs)
  }

  #finish(row: JobRow, state: 'completed' | 'dead_letter', nowMs: number): void {
    this.#backlog.remove(row)
    this.#endLease(row)
    const key = this.#latest.of(row)
    if (key?.queued === row) key.queued = null
    row.state = state
    row.completedAtMs = nowMs
    this.wakeups.finished(row.job.id, () => toView(row))
    const removed = this.#table.finish(row)
    this.#dependencies.finished(row)
    for (const gone of removed) {
      this.#latest.remove(gone)
      this.#dependencies.removed(gone)
    }
  }

  cancel(id: string, by: Actor, nowMs: number): boolean {
    const row = this.#table.get(id)
    if (row === null || isFinished(row)) return false
    const { held } = row
    this.#end(row, 'cancelled', nowMs, { ...by })
    held?.onLost({ lease: held.lease, reason: 'cancelled' })
    this.wakeups.wakeClaims()
    return true
  }

  /**
   * False unless it is a dead letter. Also false while another live job has its key (I7), and for an old version of a
   * latest key, which must not run after the newer one (I4). The caller wakes claims when its batch is complete.
   */
  requeue(id: string, by: Actor, nowMs: number, edit: PayloadEdit | null = null): boolean {
    const row = this.#table.get(id)
    if (row === null || !isDead(row) || this.#table.liveOf(row.job.key) !== null) return false
    if (row.seq !== null && row.seq < (this.#latest.of(row)?.seqMax ?? 0)) return false
    if (edit !== null && row.job.payload !== edit.replaces) return false
    record(row, 'replayed', nowMs, { detail: { ...by } })
    this.#table.unfinish(row)
    resetForReplay(row, edit, nowMs)
    this.#queue(row)
    this.#dependencies.changed(row)
    return true
  }

  /** Ends a dead letter for good. False for any other job. */
  discard(id: string, by: Actor, nowMs: number): boolean {
    const row = this.#table.get(id)
    if (row === null || !isDead(row)) return false
    this.#table.unfinish(row)
    this.#end(row, 'discarded', nowMs, { ...by })
    return true
  }

  #lossOf(lease: Lease): LostReason {
    return this.#table.get(lease.job.id)?.ended === 'cancelled' ? 'cancelled' : 'expired'
  }
}
