import type { ClaimRequest, Consumer, SubscribedType, Subscription } from '../../engine/engine.ts'
import type { Lease, Lost, Settlement } from '../../engine/outcome.ts'
import { ClosedError, UnsupportedError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { AlarmClock } from './alarm-clock.ts'
import { type Burial, burialOf, written } from './burial.ts'
import { explainCommit } from './commit-room.ts'
import type { NewRecord } from './dead-letters/record.ts'
import { unheard } from './deadline.ts'
import { isKafkaError } from './driver.ts'
import type { Held, Holding } from './holding.ts'
import { type Grip, Leases } from './leases.ts'
import type { WrittenLetters } from './letter-writer.ts'
import { Ownership, type OwnershipParts } from './ownership.ts'
import { applyOutcome, finish } from './settling.ts'
import { Troubles } from './troubles.ts'

export interface ConsumerParts extends Pick<OwnershipParts, 'client' | 'admin' | 'options' | 'existing'> {
  readonly clock: Clock
  readonly subscription: Subscription
  readonly engineClosed: AbortSignal
  /** Resolves when the letters are acknowledged by all replicas, apart from those that were refused. */
  bury(letters: readonly NewRecord[]): Promise<WrittenLetters>
  onClosed(consumer: KafkaConsumer): void
}

/** While a group is shared out anew the broker refuses commits for a moment, and takes them when they come again. */
const ORDINARY = ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']
/** How soon a start that could not be stored is tried again. */
const AGAIN_MS = 200

/** A place in the group, and what of its records is handed out. */
export class KafkaConsumer implements Consumer {
  readonly #parts: ConsumerParts
  /** By topic. */
  readonly #types: ReadonlyMap<string, SubscribedType>
  readonly #ownership: Ownership
  readonly #leases: Leases
  readonly #troubles: Troubles
  readonly #troubled = (error: unknown): void => {
    const { client } = this.#parts
    if (!isKafkaError(client, error, ...ORDINARY)) this.#troubles.tell(explainCommit(client, error))
  }
  readonly #listeners = new Set<(lost: Lost) => void>()
  readonly #closing = new AbortController()
  readonly #alarm: AlarmClock
  /** Settled in a call that was rejected for others: its repetition must not call them lost. */
  readonly #applied = new Set<string>()
  #turn = 0
  #left: Promise<void> | null = null

  constructor(parts: ConsumerParts) {
    this.#parts = parts
    const { client, admin, options, clock, existing, subscription } = parts
    const { types } = subscription
    this.#types = new Map(types === 'every' ? [] : types.map((type) => [options.prefix + type.type, type]))
    this.#leases = new Leases(options.prefix, clock)
    this.#troubles = new Troubles(clock)
    this.#alarm = new AlarmClock(clock)
    this.#ownership = new Ownership({
      ...{ client, admin, options, clock, existing, onError: this.#troubled },
      topics: [...this.#types.keys()],
      onReady: () => this.#alarm.wake(),
      onLost: (holding) => this.#lose(holding),
    })
  }

  /** A reaper joins no group: there is nothing here that it could claim. */
  async open(): Promise<void> {
    if (this.#types.size > 0) await this.#ownership.open()
  }

  async claim(request: ClaimRequest): Promise<readonly Lease[]> {
    if (request.from === 'expired' || this.#parts.subscription.types === 'every') {
      throw new UnsupportedError({
        engine: 'kafka',
        limit: `brings expired leases back by itself; nothing can be claimed from 'expired'`,
      })
    }
    const stops = [request.signal, this.#closing.signal, this.#parts.engineClosed]
    const isOver = (): boolean => stops.some(({ aborted }) => aborted)
    if (request.max < 1 || isOver()) return []
    const untilMs = this.#parts.clock.monotonicMs() + request.waitMs
    let leases = await this.#stored(this.#take(request))
    if (leases.length === 0 && request.waitMs <= 0) {
      await this.#ownership.caughtUp().catch(this.#troubled)
      if (!isOver()) leases = await this.#stored(this.#take(request))
    }
    while (leases.length === 0 && !isOver() && this.#parts.clock.monotonicMs() < untilMs) {
      await this.#sleep(this.#parts.clock.nowMs() + untilMs - this.#parts.clock.monotonicMs(), stops)
      if (!isOver()) leases = await this.#stored(this.#take(request))
    }
    return leases
  }

  /** Those whose start is stored as far as it must be; the others go back. */
  async #stored(grips: readonly Grip[]): Promise<readonly Lease[]> {
    const risky = grips.filter(({ holding, held, attempt }) => holding.isRisky(held.offset, attempt))
    if (risky.length === 0) return grips
    const askedAtMs = this.#parts.clock.monotonicMs()
    try {
      await this.#ownership.commits.commit([...new Set(risky.map(({ holding }) => holding))])
    } catch (error) {
      this.#troubled(error)
      const again = { kind: 'release', delayMs: AGAIN_MS, reason: 'not stored' } as const
      const left = risky.filter((grip) => this.#leases.remove(grip))
      this.#moved(new Set(left.map((grip) => applyOutcome(grip, again, this.#parts.clock.nowMs()))))
    }
    // Partitions may have moved meanwhile; and the time that it took is not taken from the handlers.
    const tookMs = this.#parts.clock.monotonicMs() - askedAtMs
    const held = grips.filter((grip) => this.#leases.find(grip) !== null)
    for (const grip of held) this.#leases.extend(grip, grip.expiresAtMs + tookMs)
    return held
  }

  #take({ max, perType = {} }: ClaimRequest): readonly Grip[] {
    const nowMs = this.#parts.clock.nowMs()
    if (this.#ownership.isFenced || this.#ownership.commits.isStuck) return []
    for (const grip of this.#leases.removeExpired(nowMs)) this.#putBack(grip, nowMs)
    const topics = new Map([...this.#types].map(([topic, type]) => [topic, { type, left: perType[type.type] ?? max }]))
    const sources = [...this.#ownership.holdings].flatMap((holding) => {
      const topic = topics.get(holding.topic)
      return topic === undefined ? [] : [{ holding, topic }]
    })
    const grips: Grip[] = []
    this.#turn += 1
    // From each partition in turn, so that none waits behind a long one.
    for (let isAny = true; isAny && grips.length < max; ) {
      isAny = false
      for (let index = 0; index < sources.length && grips.length < max; index += 1) {
        const source = sources[(index + this.#turn) % sources.length]
        if (source === undefined || source.topic.left <= 0) continue
        const held = this.#next(source.holding, nowMs)
        if (held === null) continue
        grips.push(this.#leases.grant(source.holding, held, source.topic.type, nowMs))
        source.topic.left -= 1
        isAny = true
      }
    }
    this.#ownership.started(new Set(grips.map(({ holding }) => holding)))
    return grips
  }

  #next(holding: Holding, nowMs: number): Held | null {
    try {
      return holding.take(nowMs)
    } catch (error) {
      this.#ownership.broken(holding, error)
      return null
    }
  }

  /** Until something may be claimable, or the time is over. */
  #sleep(untilMs: number, stops: readonly AbortSignal[]): Promise<void> {
    let nextMs = Math.min(untilMs, this.#leases.nextExpiryMs)
    for (const { lanes } of this.#ownership.holdings) nextMs = Math.min(nextMs, lanes.nextDueMs)
    return this.#alarm.sleepUntil(nextMs, stops)
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    const nowMs = this.#openNowMs()
    if (this.#ownership.isFenced) throw unheard()
    return leases.flatMap((lease) => {
      const grip = this.#leases.check(lease, nowMs)
      if (typeof grip === 'string') return [{ lease, reason: grip }]
      this.#leases.extend(grip, nowMs + leaseMs)
      // What runs for long would otherwise keep all that it came with.
      grip.held.record.detach()
      return []
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Lost[]> {
    this.#openNowMs()
    const wasFenced = this.#ownership.isFenced
    if (wasFenced) await this.#ownership.known()
    const nowMs = this.#openNowMs()
    const isHeld = ({ lease }: Settlement): boolean => this.#leases.find(lease) !== null
    if (this.#ownership.isFenced && settlements.some(isHeld)) throw unheard()
    const [{ group }, { worker }] = [this.#parts.options, this.#parts.subscription]
    const lost: Lost[] = []
    const buried: Burial[] = []
    const applied: Lease[] = []
    const moved = new Set<Holding>()
    for (const { lease, outcome } of settlements) {
      if (this.#applied.size > 0 && this.#applied.has(lease.token)) continue
      const grip = this.#leases.check(lease, nowMs)
      if (typeof grip === 'string') {
        lost.push({ lease, reason: wasFenced ? 'revoked' : grip })
        continue
      }
      this.#leases.remove(grip)
      if (outcome.kind === 'dead') buried.push(burialOf(grip, outcome.error, { group, worker, nowMs }))
      else {
        moved.add(applyOutcome(grip, outcome, nowMs))
        applied.push(lease)
      }
    }
    this.#moved(moved)
    if (buried.length > 0) lost.push(...(await this.#bury(buried, applied)))
    if (this.#applied.size > 0) for (const { lease } of settlements) this.#applied.delete(lease.token)
    this.#leaveWhenIdle()
    return lost
  }

  /**
   * The letter is acknowledged before its offset is settled: a crash between the two writes it again, under its key. One
   * that is refused keeps back its own record alone; the call rejects for it, and its repetition writes no other again.
   */
  async #bury(buried: readonly Burial[], applied: readonly Lease[]): Promise<readonly Lost[]> {
    const settled = [...applied]
    let left = buried
    try {
      const { refused, alarms } = await this.#parts.bury(buried.map(({ letter }) => letter))
      for (const alarm of alarms) this.#troubled(alarm)
      if (this.#ownership.isFenced) await this.#ownership.known()
      if (this.#ownership.isFenced && buried.some(({ grip }) => !grip.holding.isLost)) throw unheard()
      const { here, gone } = written(buried, refused)
      this.#moved(new Set(here.map(finish)))
      settled.push(...here)
      left = buried.filter(({ letter }) => refused.has(letter))
      for (const error of refused.values()) throw error
      return gone.map((lease) => ({ lease, reason: 'revoked' }))
    } catch (error) {
      for (const { grip } of left) if (!grip.holding.isLost) this.#leases.restore(grip)
      for (const { token } of settled) this.#applied.add(token)
      throw error
    }
  }

  /** Records of these were settled or parked. Told once for all, because most come by the hundred. */
  #moved(holdings: ReadonlySet<Holding>): void {
    let isAnyWaiting = false
    for (const holding of holdings) {
      isAnyWaiting ||= holding.isWaiting
      this.#ownership.settled(holding)
    }
    if (isAnyWaiting) this.#alarm.wake()
  }

  /** The lease ran out: the start counts, and the record is due at once. */
  #putBack({ holding, held }: Grip, nowMs: number): void {
    holding.watermark.defer(held.offset, nowMs, nowMs)
    holding.park(held, nowMs)
    this.#ownership.settled(holding)
  }

  #lose(holding: Holding): void {
    const grips = this.#leases.removeOf(holding)
    if (grips.length === 0) return
    queueMicrotask(() => {
      for (const lease of grips) for (const listener of this.#listeners) listener({ lease, reason: 'revoked' })
    })
    this.#leaveWhenIdle()
  }

  /** Progress is kept nowhere; that the lease still holds is true all the same. */
  async report(lease: Lease): Promise<boolean> {
    const nowMs = this.#openNowMs()
    if (this.#ownership.isFenced) throw unheard()
    return typeof this.#leases.check(lease, nowMs) !== 'string'
  }

  onLost(listener: (lost: Lost) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  onTrouble(listener: (error: unknown) => void): () => void {
    return this.#troubles.listen(listener)
  }

  /** Commits everything that is settled: others see it then. */
  flush(): Promise<void> {
    return this.#ownership.commits.flush()
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
    this.#left ??= this.#types.size === 0 ? Promise.resolve() : this.#ownership.close()
    return this.#left.finally(() => this.#parts.onClosed(this))
  }

  #openNowMs(): number {
    if (this.#parts.engineClosed.aborted) throw new ClosedError('the kafka engine')
    return this.#parts.clock.nowMs()
  }
}
