import { ChurnMap } from '../../engine/churn-map.ts'
import type { ClaimRequest, Consumer, ConsumerListener, SubscribedType, Subscription } from '../../engine/engine.ts'
import { isExpired, type Lease, type Lost, type Settlement } from '../../engine/outcome.ts'
import { readyTypes } from '../../engine/subscriptions.ts'
import { backgroundClock } from '../../time/clock.ts'
import { type Claimed, claimReady, nextToken } from './claim.ts'
import type { RedisCore } from './core.ts'
import { bullId, queueOf } from './keys.ts'
import { finishBatches } from './large-batch.ts'
import { renewLeases, reportProgress, retakeLocks } from './leases.ts'
import { claimExpired, type LostClaim, releaseStrandedJobs, takeBackClaims } from './recovery.ts'
import { finalView, settleLeases } from './settle.ts'
import { Wakeups } from './wakeups.ts'

/** Jobs per script: Redis runs nothing else meanwhile. */
const CLAIM_MAX = 100
/** A reaper looks again after this at the latest, because nothing announces a lock that another program deletes. */
const EXPIRED_MS = 1_000
/** Renewals check the server's clock at most this often. */
const LOOK_MS = 2_000

/** How often a claim finds out which of the empty queues are paused: the end of a pause is not always announced. */
const FULL_MS = 1_000
/** Longer than a wait for wake-ups takes before it looks by itself. */
const UNANNOUNCED_MS = 3_600_000

/** How long `consume` waits for the connection that listens. */
const LISTEN_MS = 1_000

/** A claim for which there was nothing, and until when there is nothing that is not announced. */
interface EmptyLook {
  readonly request: ClaimRequest
  readonly untilMs: number
}

export class RedisConsumer implements Consumer {
  readonly isRemote = true
  readonly looksAgain = true
  readonly #core: RedisCore
  readonly #subscription: Subscription
  readonly #wakeups: Wakeups | null
  readonly #held = new ChurnMap<string, Lease>()
  readonly #claims = new Set<Promise<readonly Lease[]>>()
  readonly #listeners = new Set<ConsumerListener>()
  readonly #closing = new AbortController()
  readonly #listening = Promise.withResolvers<void>()
  #lookInMs: number | null = null
  #empty: EmptyLook | null = null
  /** The last look at paused queues, and whether one of them may go on without being announced. */
  #full = { atMs: Number.NEGATIVE_INFINITY, mayGoOn: false }
  readonly #stopListening: () => void = () => {}

  constructor(core: RedisCore, subscription: Subscription) {
    this.#core = core
    this.#subscription = subscription
    const { database, clock, pollMs } = core
    const { prefix, lost } = database.keys
    this.#wakeups =
      subscription.types === 'every'
        ? null
        : new Wakeups(database.blockingConnection(), clock, {
            markers: subscription.types.map(({ type }) => `${prefix}:${queueOf(type)}:marker`),
            pollMs,
            putBack: ({ key, score, member }) => void database.call('zadd', key, score, member).catch(() => {}),
          })
    // A reaper holds what it claims for a moment, and the renewal thread claims nothing.
    if (subscription.types === 'every') this.#listening.resolve()
    else
      this.#stopListening = database.listen(lost, {
        hear: (job) => this.#onCancelled(job),
        resumed: () => this.#listening.resolve(),
      })
  }

  get isReady(): boolean {
    return this.#core.database.isReady
  }

  /** Resolves when cancellations are heard, or after LISTEN_MS: the next renewal reports them too. */
  async ready(): Promise<void> {
    const over = new AbortController()
    const isReady = Promise.all([this.#listening.promise, this.#registerTypes()])
    await Promise.race([isReady, backgroundClock.sleep(LISTEN_MS, over.signal)])
    over.abort()
  }

  /** From now on jobs that other programs added to these queues are counted and listed, before any is claimed. */
  async #registerTypes(): Promise<void> {
    const { types } = this.#subscription
    if (types === 'every' || types.length === 0) return
    const { database } = this.#core
    // A server with full memory refuses this; the first claim does it again.
    await database.call('sadd', database.keys.types, ...types.map(({ type }) => queueOf(type))).catch(() => {})
    const leases = types.flatMap(({ type, leaseMs }) => [queueOf(type), leaseMs])
    await database.call('hset', database.keys.leases, ...leases).catch(() => {})
  }

  claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const claim = this.#claim(request)
    this.#claims.add(claim)
    const forget = (): void => void this.#claims.delete(claim)
    claim.then(forget, forget)
    return claim
  }

  async #claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const { clock } = this.#core
    const signal = AbortSignal.any([request.signal, this.#closing.signal])
    const untilMs = clock.monotonicMs() + request.waitMs
    let isFirst = true
    while (!signal.aborted) {
      if (!this.#isStillEmpty(request)) {
        const { types, worker } = this.#subscription
        const claim: LostClaim = { token: nextToken(request.from), worker, types }
        this.#wakeups?.forget()
        const { leases, lookInMs } = await this.#core.lostClaims.guard(claim, () => this.#take(request, claim))
        this.#lookInMs = lookInMs
        if (signal.aborted) return this.#giveBack(leases, request, claim)
        for (const lease of leases) this.#held.set(nameOf(lease), lease)
        // It took all there was, so the next one need not look before it hears of more.
        const isAll = leases.length < Math.min(request.max, CLAIM_MAX)
        this.#empty = isAll ? { request, untilMs: clock.monotonicMs() + (lookInMs ?? UNANNOUNCED_MS) } : null
        if (leases.length > 0) return leases
      }
      // A reaper claims until nothing is left, so this runs once per pass.
      if (request.from === 'expired' && isFirst) {
        await releaseStrandedJobs(this.#core.database, this.#subscription.types, signal)
        await finishBatches(this.#core.database, signal)
      }
      isFirst = false
      const nowMs = clock.monotonicMs()
      // A timer may end a little early.
      if (untilMs - nowMs < 1) {
        // The next claim then need not look.
        if (request.waitMs > 0 && request.from !== 'expired') this.#wakeups?.begin()
        return []
      }
      const lookAtMs = this.#empty?.untilMs ?? nowMs
      await this.#wait(Math.max(1, Math.min(untilMs, lookAtMs) - nowMs), request, signal)
    }
    // Who ends a claim asks for something else next: other types, or under other limits.
    this.#empty = null
    return []
  }

  /** Every job that becomes claimable is announced, or is due at a known time: a claim that goes on waiting need not look. */
  #isStillEmpty({ waitMs, from, perType }: ClaimRequest): boolean {
    const { clock, steps } = this.#core
    if (waitMs === 0 || from === 'expired' || this.#empty === null || steps.isStepped) return false
    const { request, untilMs } = this.#empty
    if (this.#wakeups?.isQuiet !== true || clock.monotonicMs() >= untilMs) return false
    return request.from !== 'expired' && JSON.stringify(perType) === JSON.stringify(request.perType)
  }

  /** Resolves when there may be work that the last claim did not find. For those who wait for several consumers at once. */
  async waitForWork(signal: AbortSignal): Promise<void> {
    const closed = AbortSignal.any([signal, this.#closing.signal])
    await this.#wakeups?.wait(Math.max(1, this.#lookInMs ?? UNANNOUNCED_MS), closed)
    this.#empty = null
  }

  async #wait(ms: number, { from }: ClaimRequest, signal: AbortSignal): Promise<void> {
    if (from === 'expired' || this.#wakeups === null) await this.#core.clock.sleep(Math.min(ms, EXPIRED_MS), signal)
    else if (await this.#wakeups.wait(ms, signal)) this.#empty = null
  }

  async #take(request: ClaimRequest, { token, worker, types }: LostClaim): Promise<Claimed> {
    const { database, clock, steps } = this.#core
    if (request.from === 'expired' || steps.isStepped) await steps.follow()
    const max = Math.min(request.max, CLAIM_MAX)
    const claiming = { database, clock, worker, token }
    if (request.from === 'expired') return claimExpired(claiming, types, max)
    const nowMs = clock.monotonicMs()
    const isFull = nowMs - this.#full.atMs >= FULL_MS
    const { leases, lookInMs } = await claimReady(claiming, this.#types(), { ...request, max, isFull })
    if (isFull) this.#full = { atMs: nowMs, mayGoOn: lookInMs !== null }
    if (isFull || !this.#full.mayGoOn) return { leases, lookInMs }
    const fullInMs = this.#full.atMs + FULL_MS - nowMs
    return { leases, lookInMs: Math.min(lookInMs ?? fullInMs, fullInMs) }
  }

  #types(): readonly SubscribedType[] {
    return readyTypes(this.#subscription, 'redis')
  }

  /** The claim was aborted while it was on its way: its jobs would never run. */
  async #giveBack(leases: readonly Lease[], { from }: ClaimRequest, claim: LostClaim): Promise<readonly Lease[]> {
    if (leases.length === 0) return []
    const { database, lostClaims } = this.#core
    const outcome = { kind: 'release', delayMs: 0, reason: 'the claim was aborted' } as const
    const released = leases.map((lease) => ({ lease, outcome })).toReversed()
    // What a reaper took over must not be released: the start of its dead holder counts.
    await lostClaims.guard(claim, async () => {
      if (from === 'expired') await takeBackClaims(database, [claim])
      else await settleLeases(database, claim.worker, released)
    })
    return []
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    if (leases.length === 0) return []
    const { database, steps } = this.#core
    await steps.follow(LOOK_MS)
    return this.#unlessStepped(leases, (asked) => renewLeases(database, asked, leaseMs), leaseMs)
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Lost[]> {
    if (settlements.length === 0) return []
    // From here on the answer reports a loss, not a listener.
    for (const { lease } of settlements) this.#held.delete(nameOf(lease))
    const { worker } = this.#subscription
    const lost = await this.#unlessStepped(
      settlements.map(({ lease }) => lease),
      (asked) => {
        const meant = new Set(asked)
        const those = settlements.filter(({ lease }) => meant.has(lease))
        return settleLeases(this.#core.database, worker, those)
      },
    )
    this.#rememberRemoved(settlements, lost)
    return lost
  }

  /** Keeps the final view of a removed job for those in this process that wait for it. */
  #rememberRemoved(settlements: readonly Settlement[], lost: readonly Lost[]): void {
    const { removedViews, finishWaits, clock } = this.#core
    const refused = new Set(lost.map(({ lease }) => lease.token))
    for (const { lease, outcome } of settlements) {
      if (refused.has(lease.token) || !removedViews.isExpected(lease.job.id)) continue
      const view = finalView(lease, outcome, clock.nowMs())
      if (view !== null) removedViews.tell(view)
    }
    finishWaits.notify()
  }

  async report(lease: Lease, progress: string): Promise<boolean> {
    const report = (): Promise<boolean> => reportProgress(this.#core.database, lease, progress)
    return (await report()) || ((await this.#retake([lease])) && report())
  }

  /** If a step of the server's clock ended the lock, takes the lock back and asks once more. */
  async #unlessStepped(
    leases: readonly Lease[],
    ask: (leases: readonly Lease[]) => Promise<readonly Lost[]>,
    leaseMs?: number,
  ): Promise<readonly Lost[]> {
    const lost = await ask(leases)
    const expired = lost.filter(isExpired).map(({ lease }) => lease)
    if (expired.length === 0 || !(await this.#retake(expired, leaseMs))) return lost
    return [...lost.filter((one) => !isExpired(one)), ...(await ask(expired))]
  }

  async #retake(leases: readonly Lease[], leaseMs?: number): Promise<boolean> {
    const { database, steps } = this.#core
    await steps.follow()
    return retakeLocks(database, this.#subscription.worker, leases, leaseMs)
  }

  tellTrouble(error: unknown): void {
    for (const { onTrouble } of this.#listeners) onTrouble?.(error)
  }

  listen(listener: ConsumerListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #onCancelled(name: string): void {
    const lease = this.#held.get(name)
    if (lease === undefined) return
    this.#held.delete(name)
    for (const { onLost } of this.#listeners) onLost?.({ lease, reason: 'cancelled' })
  }

  /** A waiting claim ends at once. A claim on its way to the server is answered, and its jobs are given back. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#stopListening()
    this.#wakeups?.close()
    await Promise.allSettled(this.#claims)
    this.#core.forget(this)
  }
}

/** As cancellations are published. */
function nameOf({ job }: Lease): string {
  return `${queueOf(job.type)}:${bullId(job.type, job.id)}`
}
