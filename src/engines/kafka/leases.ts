import type { SubscribedType } from '../../engine/engine.ts'
import { type Indexed, IndexedSet } from '../../engine/indexed-set.ts'
import type { Lease, LostReason } from '../../engine/outcome.ts'
import type { ErrorRecord } from '../../job/job.ts'
import type { Clock } from '../../time/clock.ts'
import { ClockSteps } from '../../time/clock.ts'
import { RecordJob } from './job-record.ts'
import type { HeldRecord, OwnedPartition } from './owned-partition.ts'

/** A record that was handed out: the lease that a worker has in hand, and where its record stands. */
export class KafkaLease implements Lease, Indexed {
  readonly job: RecordJob
  readonly verdict?: string
  readonly failure?: ErrorRecord
  readonly attempt: number
  expiresAtMs: number
  setIndex = -1
  readonly #owned: OwnedPartition
  readonly #held: HeldRecord
  readonly #tokenPrefix: string
  readonly #number: number

  constructor(
    owned: OwnedPartition,
    held: HeldRecord,
    job: RecordJob,
    number: number,
    attempt: number,
    expiresAtMs: number,
    failure: ErrorRecord | undefined,
  ) {
    this.job = job
    const { verdict } = job
    if (verdict !== null) this.verdict = verdict
    if (failure !== undefined) this.failure = failure
    this.attempt = attempt
    this.expiresAtMs = expiresAtMs
    this.#number = number
    this.#tokenPrefix = owned.tokenPrefix
    this.#owned = owned
    this.#held = held
  }

  /** Where the record stood, and a number that no other claim has had. Made when asked for: few ever are. */
  get token(): string {
    return `${this.#tokenPrefix}/${this.#held.offset}/${this.#number}`
  }

  get owned(): OwnedPartition {
    return this.#owned
  }

  get held(): HeldRecord {
    return this.#held
  }
}

const NONE: readonly KafkaLease[] = []

/**
 * What a consumer has handed out. The group is the lease towards others; this one is towards our own worker, so that a
 * job that it has forgotten does not keep its key back for ever.
 */
export class Leases {
  readonly #grants = new IndexedSet<KafkaLease>()
  #claims = 0
  /** No lease runs out before this: looking at each of them at every claim would cost the square of their number. */
  readonly #steps: ClockSteps
  #noneBeforeMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#steps = new ClockSteps(clock)
  }

  /** What is left of every lease stays when the clock is set. To be called before leases are checked, once for all. */
  followClock(): void {
    const stepMs = this.#steps.take()
    if (stepMs === 0) return
    for (const grant of this.#grants.values()) grant.expiresAtMs += stepMs
    this.#noneBeforeMs += stepMs
  }

  get size(): number {
    return this.#grants.size
  }

  /** Hands a record out, and counts the start, unless the record has failed for good and only its letter is missing. */
  grant(owned: OwnedPartition, held: HeldRecord, subscribed: SubscribedType, nowMs: number): KafkaLease {
    const { type, leaseMs, attempts } = subscribed
    const { failure, starts } = owned.watermark.retryStateOf(held.offset)
    const attempt = failure === undefined ? owned.watermark.start(held.offset) : starts
    this.#claims += 1
    const job = new RecordJob(held.record, type, attempts)
    const grant = new KafkaLease(owned, held, job, this.#claims, attempt, nowMs + leaseMs, failure)
    this.restore(grant)
    return grant
  }

  /** It holds until then. */
  extend(grant: KafkaLease, untilMs: number): void {
    grant.expiresAtMs = untilMs
    this.#noneBeforeMs = Math.min(this.#noneBeforeMs, untilMs)
  }

  /** Workers give back what they were given; of anything else the token counts. */
  find(lease: Lease): KafkaLease | null {
    if (lease instanceof KafkaLease) return this.#grants.has(lease) ? lease : null
    return this.#grants.values().find(({ token }) => token === lease.token) ?? null
  }

  /** The grip while it holds; else why it does not. */
  check(lease: Lease, nowMs: number): KafkaLease | LostReason {
    const grant = this.find(lease)
    if (grant === null) return 'expired'
    if (grant.owned.isLost) return 'revoked'
    return grant.expiresAtMs > nowMs ? grant : 'expired'
  }

  /** Takes it out of the books. False when it was not in them. */
  remove(grant: KafkaLease): boolean {
    return this.#grants.delete(grant)
  }

  /** What could not be settled after all. */
  restore(grant: KafkaLease): void {
    if (grant.expiresAtMs < this.#noneBeforeMs) this.#noneBeforeMs = grant.expiresAtMs
    this.#grants.add(grant)
  }

  removeOf(owned: OwnedPartition): readonly KafkaLease[] {
    return this.#removeWhere((grant) => grant.owned === owned)
  }

  removeExpired(nowMs: number): readonly KafkaLease[] {
    this.followClock()
    if (nowMs < this.#noneBeforeMs) return NONE
    const removed = this.#removeWhere(({ expiresAtMs }) => expiresAtMs <= nowMs)
    this.#noneBeforeMs = this.nextExpiryMs
    return removed
  }

  get nextExpiryMs(): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const { expiresAtMs } of this.#grants.values()) nextMs = Math.min(nextMs, expiresAtMs)
    return nextMs
  }

  #removeWhere(isGone: (grant: KafkaLease) => boolean): readonly KafkaLease[] {
    return this.#grants.values().filter((grant) => isGone(grant) && this.#grants.delete(grant))
  }
}
