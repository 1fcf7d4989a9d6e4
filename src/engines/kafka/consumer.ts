import type { ClaimRequest, Consumer, ConsumerListener, SubscribedType, Subscription } from '../../engine/engine.ts'
import type { Lease, Lost, Settlement } from '../../engine/outcome.ts'
import { ClosedError, UnsupportedError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { Assignment, type AssignmentParts } from './assignment.ts'
import { BackgroundErrors } from './background-errors.ts'
import { explainCommit } from './commits.ts'
import type { WrittenLetters } from './dead-letters/letter-writer.ts'
import { isKafkaError } from './driver.ts'
import { unheard } from './faults.ts'
import { type KafkaLease, Leases } from './leases.ts'
import type { HeldRecord, OwnedPartition } from './owned-partition.ts'
import type { NewRecord } from './record.ts'
import { applyOutcome, expire, type FinalFailure, finish, keepCause, toFinalFailure, writtenLeases } from './settle.ts'
import { Wakeups } from './wakeups.ts'

export interface ConsumerParts extends Pick<AssignmentParts, 'client' | 'admin' | 'options' | 'existing'> {
  readonly clock: Clock
  readonly subscription: Subscription
  readonly engineClosed: AbortSignal
  /** Resolves when the letters are acknowledged by all replicas, apart from those that were refused. */
  writeLetters(letters: readonly NewRecord[]): Promise<WrittenLetters>
  onClosed(consumer: KafkaConsumer): void
}

/** While a group is shared out anew the broker refuses commits for a moment, and takes them when they come again. */
const ORDINARY = ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']
/** How a start that could not be stored is put off. */
const NOT_STORED = Object.freeze({ kind: 'release', delayMs: 200, reason: 'not stored' })

/** A place in the group, and what of its records is handed out. */
export class KafkaConsumer implements Consumer {
  readonly #parts: ConsumerParts
  /** By topic. */
  readonly #types: ReadonlyMap<string, SubscribedType>
  readonly #assignment: Assignment
  readonly #leases: Leases
  readonly #backgroundErrors: BackgroundErrors
  readonly #reportError = (error: unknown): void => {
    const { client } = this.#parts
    if (!isKafkaError(client, error, ...ORDINARY)) this.#backgroundErrors.tell(explainCommit(client, error))
  }
  readonly #listeners = new Set<ConsumerListener>()
  readonly #closing = new AbortController()
  readonly #wakeups: Wakeups
  /** Settled in a call that was rejected for others: its repetition must not call them lost. */
  readonly #applied = new Set<string>()
  #turn = 0
  #left: Promise<void> | null = null

  constructor(parts: ConsumerParts) {
    this.#parts = parts
    const { client, admin, options, clock, existing, subscription } = parts
    const { types } = subscription
    this.#types = new Map(types === 'every' ? [] : types.map((type) => [options.prefix + type.type, type]))
    this.#leases = new Leases(clock)
    this.#backgroundErrors = new BackgroundErrors(clock)
    this.#wakeups = new Wakeups(clock)
    this.#assignment = new Assignment({
      ...{ client, admin, options, clock, existing, onError: this.#reportError },
      topics: [...this.#types.keys()],
      worker: subscription.worker,
      isPaused: (topic) => subscription.isPaused?.(topic.slice(options.prefix.length)) ?? false,
      onReady: () => this.#wakeups.wake(),
      onLost: (owned) => this.#lose(owned),
    })
  }

  /** A reaper joins no group: there is nothing here that it could claim. */
  async open(): Promise<void> {
    if (this.#types.size > 0) await this.#assignment.open()
  }

  async claim(request: ClaimRequest): Promise<readonly Lease[]> {
    if (request.from === 'expired' || this.#parts.subscription.types === 'every') {
      const limit = `brings expired leases back by itself; nothing can be claimed from 'expired'`
      throw new UnsupportedError({ engine: 'kafka', limit })
    }
    const stops = [request.signal, this.#closing.signal, this.#parts.engineClosed]
    const isOver = (): boolean => stops.some(({ aborted }) => aborted)
    if (request.max < 1 || isOver()) return []
    const untilMs = this.#parts.clock.monotonicMs() + request.waitMs
    let leases = await this.#stored(this.#take(request))
    if (leases.length === 0 && request.waitMs <= 0) {
      await this.#assignment.caughtUp().catch(this.#reportError)
      if (!isOver()) leases = await this.#stored(this.#take(request))
    }
    while (leases.length === 0 && !isOver() && this.#parts.clock.monotonicMs() < untilMs) {
      await this.#sleep(request, this.#parts.clock.nowMs() + untilMs - this.#parts.clock.monotonicMs(), stops)
      if (!isOver()) leases = await this.#stored(this.#take(request))
    }
    return leases
  }

  /** Those whose start is stored as far as it must be; the others go back. Handlers do not lose the time that it takes. */
  async #stored(grants: readonly KafkaLease[]): Promise<readonly Lease[]> {
    const risky = grants.filter(({ owned, held, attempt }) => owned.needsStoredStart(held.offset, attempt))
    if (risky.length === 0) return grants
    const askedAtMs = this.#parts.clock.monotonicMs()
    let left: readonly KafkaLease[] = []
    await this.#assignment.commits.commit([...new Set(risky.map(({ owned }) => owned))]).catch((error: unknown) => {
      this.#reportError(error)
      left = risky
    })
    // Partitions may have moved meanwhile, unseen if the process stood still.
    if (this.#assignment.isFenced) left = grants
    const gone = left.filter((grant) => this.#leases.remove(grant))
    this.#moved(new Set(gone.map((grant) => applyOutcome(grant, NOT_STORED, this.#parts.clock.nowMs()))))
    const held = grants.filter((grant) => this.#leases.find(grant) !== null)
    const tookMs = this.#parts.clock.monotonicMs() - askedAtMs
    for (const grant of held) this.#leases.extend(grant, grant.expiresAtMs + tookMs)
    return held
  }

  #take({ max, perType = {} }: ClaimRequest): readonly KafkaLease[] {
    const nowMs = this.#parts.clock.nowMs()
    if (this.#assignment.isFenced || this.#assignment.commits.isStuck) return []
    for (const grant of this.#leases.removeExpired(nowMs)) this.#assignment.settled(expire(grant, nowMs))
    const topics = new Map([...this.#types].map(([topic, type]) => [topic, { type, left: perType[type.type] ?? max }]))
    const sources = [...this.#assignment.ownedPartitions].flatMap((owned) => {
      const topic = topics.get(owned.topic)
      return topic === undefined ? [] : [{ owned, topic, from: owned.watermark.position }]
    })
    const grants: KafkaLease[] = []
    this.#turn += 1
    // From each partition in turn, so that none waits behind a long one.
    for (let isAny = true; isAny && grants.length < max; ) {
      isAny = false
      for (let index = 0; index < sources.length && grants.length < max; index += 1) {
        const source = sources[(index + this.#turn) % sources.length]
        if (source === undefined || source.topic.left <= 0) continue
        const held = this.#next(source.owned, nowMs)
        if (held === null) continue
        grants.push(this.#leases.grant(source.owned, held, source.topic.type, nowMs))
        source.topic.left -= 1
        isAny = true
      }
    }
    const passed = sources.filter(({ owned, from }) => owned.watermark.position !== from)
    this.#assignment.started(new Set([...grants, ...passed].map(({ owned }) => owned)))
    return grants
  }

  #next(owned: OwnedPartition, nowMs: number): HeldRecord | null {
    try {
      return owned.take(nowMs)
    } catch (error) {
      this.#assignment.broken(owned, error)
      return null
    }
  }

  /** Until something may be claimable, or the time is over. */
  #sleep({ perType }: ClaimRequest, untilMs: number, stops: readonly AbortSignal[]): Promise<void> {
    let nextMs = Math.min(untilMs, this.#leases.nextExpiryMs)
    // What is due of a type that is left out would wake it again and again.
    for (const { topic, queues } of this.#assignment.ownedPartitions)
      if (perType?.[this.#types.get(topic)?.type ?? ''] !== 0) nextMs = Math.min(nextMs, queues.nextDueMs)
    return this.#wakeups.sleepUntil(nextMs, stops)
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    const nowMs = this.#openNowMs()
    if (this.#assignment.isFenced) throw unheard()
    return leases.flatMap((lease) => {
      const grant = this.#leases.check(lease, nowMs)
      if (typeof grant === 'string') return [{ lease, reason: grant }]
      this.#leases.extend(grant, nowMs + leaseMs)
      // What runs for long would otherwise keep all that it came with.
      grant.held.record.detach()
      return []
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Lost[]> {
    this.#openNowMs()
    const wasFenced = this.#assignment.isFenced
    if (wasFenced) await this.#assignment.known()
    const nowMs = this.#openNowMs()
    const isHeld = ({ lease }: Settlement): boolean => this.#leases.find(lease) !== null
    if (this.#assignment.isFenced && settlements.some(isHeld)) throw unheard()
    const [{ group }, { worker }] = [this.#parts.options, this.#parts.subscription]
    const lost: Lost[] = []
    const failures: FinalFailure[] = []
    const applied: Lease[] = []
    const moved = new Set<OwnedPartition>()
    for (const { lease, outcome } of settlements) {
      if (this.#applied.size > 0 && this.#applied.has(lease.token)) continue
      const grant = this.#leases.check(lease, nowMs)
      if (typeof grant === 'string') {
        lost.push({ lease, reason: wasFenced ? 'revoked' : grant })
        continue
      }
      this.#leases.remove(grant)
      if (outcome.kind === 'dead') failures.push(toFinalFailure(grant, outcome.error, { group, worker, nowMs }))
      else {
        moved.add(applyOutcome(grant, outcome, nowMs))
        applied.push(lease)
      }
    }
    this.#moved(moved)
    if (failures.length > 0) lost.push(...(await this.#writeLetters(failures, applied)))
    if (this.#applied.size > 0) for (const { lease } of settlements) this.#applied.delete(lease.token)
    this.#leaveWhenIdle()
    return lost
  }

  /**
   * The letter is acknowledged before its offset is settled: a crash between the two writes it again, under its key. One
   * that is refused keeps back its own record alone; the call rejects for it, and its repetition writes no other again.
   */
  async #writeLetters(failures: readonly FinalFailure[], applied: readonly Lease[]): Promise<readonly Lost[]> {
    const settled = [...applied]
    let left = failures
    try {
      const { refused, alarms } = await this.#parts.writeLetters(failures.map(({ letter }) => letter))
      for (const wakeups of alarms) this.#reportError(wakeups)
      if (this.#assignment.isFenced) await this.#assignment.known()
      if (this.#assignment.isFenced && failures.some(({ grant }) => !grant.owned.isLost)) throw unheard()
      const { here, gone } = writtenLeases(failures, refused)
      this.#moved(new Set(here.map(finish)))
      settled.push(...here)
      left = failures.filter(({ letter }) => refused.has(letter))
      for (const error of refused.values()) throw error
      return gone.map((lease) => ({ lease, reason: 'revoked' }))
    } catch (error) {
      const kept = left.filter(({ grant }) => !grant.owned.isLost)
      for (const { grant } of kept) this.#leases.restore(grant)
      this.#moved(new Set(kept.map((failure) => keepCause(failure, this.#parts.clock.nowMs()))))
      for (const { token } of settled) this.#applied.add(token)
      throw error
    }
  }

  /** Records of these were settled or parked. Told once for all, because most come by the hundred. */
  #moved(ownedPartitions: ReadonlySet<OwnedPartition>): void {
    let isAnyWaiting = false
    for (const owned of ownedPartitions) {
      isAnyWaiting ||= owned.isWaiting
      this.#assignment.settled(owned)
    }
    if (isAnyWaiting) this.#wakeups.wake()
  }

  #lose(owned: OwnedPartition): void {
    const grants = this.#leases.removeOf(owned)
    if (grants.length === 0) return
    queueMicrotask(() => {
      for (const lease of grants) for (const { onLost } of this.#listeners) onLost?.({ lease, reason: 'revoked' })
    })
    this.#leaveWhenIdle()
  }

  /** Progress is kept nowhere; that the lease still holds is true all the same. */
  async report(lease: Lease): Promise<boolean> {
    const nowMs = this.#openNowMs()
    if (this.#assignment.isFenced) throw unheard()
    return typeof this.#leases.check(lease, nowMs) !== 'string'
  }

  listen(listener: ConsumerListener): () => void {
    this.#listeners.add(listener)
    const { onTrouble } = listener
    const stopErrors = onTrouble === undefined ? null : this.#backgroundErrors.listen(onTrouble)
    return () => {
      this.#listeners.delete(listener)
      stopErrors?.()
    }
  }

  /** Commits everything that is settled: others see it then. */
  flush(): Promise<void> {
    return this.#assignment.commits.flush()
  }

  /** Its partitions go to others as soon as nothing of them is held. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#leaveWhenIdle()
    if (this.#left !== null) await this.#left
  }

  #leaveWhenIdle(): void {
    if (this.#closing.signal.aborted && this.#leases.size === 0) void this.leave()
  }

  /** Leaves the group, whatever is held. */
  leave(): Promise<void> {
    this.#closing.abort()
    this.#left ??= this.#types.size === 0 ? Promise.resolve() : this.#assignment.close()
    return this.#left.finally(() => this.#parts.onClosed(this))
  }

  #openNowMs(): number {
    if (this.#parts.engineClosed.aborted) throw new ClosedError('the kafka engine')
    this.#leases.followClock()
    return this.#parts.clock.nowMs()
  }
}
