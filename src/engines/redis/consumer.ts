import { ChurnMap } from '../../engine/churn-map.ts'
import type { ClaimRequest, Consumer, SubscribedType, Subscription } from '../../engine/engine.ts'
import { isExpired, type Lease, type Lost, type Outcome, type Settlement } from '../../engine/outcome.ts'
import { readyTypes } from '../../engine/subscriptions.ts'
import type { JobView } from '../../job/job.ts'
import { backgroundClock } from '../../time/clock.ts'
import { type Claimed, claimReady, nextToken } from './claim.ts'
import type { RedisCore } from './core.ts'
import { bullId, queueOf } from './keys.ts'
import { finishBatches } from './large-batch.ts'
import { renewLeases, reportProgress, retakeLocks } from './leases.ts'
import { claimExpired, type LostClaim, releaseStrandedJobs, takeBackClaims } from './recovery.ts'
import { settleLeases } from './settle.ts'
import { Wakeups } from './wakeups.ts'

/** Jobs per script: Redis does nothing else meanwhile. */
const CLAIM_MAX = 100
/** A reaper looks again after this at the latest, because a lock that somebody deletes runs out unannounced. */
const EXPIRED_MS = 1_000
/** Renewals look at the server's clock this often at most. */
const LOOK_MS = 2_000

/** How long `consume` waits for the connection that listens. */
const LISTEN_MS = 1_000

export class RedisConsumer implements Consumer {
  readonly #core: RedisCore
  readonly #subscription: Subscription
  readonly #doorbell: Wakeups | null
  readonly #held = new ChurnMap<string, Lease>()
  readonly #claims = new Set<Promise<readonly Lease[]>>()
  readonly #listeners = new Set<(lost: Lost) => void>()
  readonly #troubles = new Set<(error: unknown) => void>()
  readonly #closing = new AbortController()
  readonly #listening = Promise.withResolvers<void>()
  readonly #stopListening: () => void

  constructor(core: RedisCore, subscription: Subscription) {
    this.#core = core
    this.#subscription = subscription
    const { database, clock, pollMs } = core
    const { prefix, lost } = database.keys
    this.#doorbell =
      subscription.types === 'every'
        ? null
        : new Wakeups(
            database.blocker(),
            clock,
            subscription.types.map(({ type }) => `${prefix}:${queueOf(type)}:marker`),
            pollMs,
          )
    this.#stopListening = database.listen(lost, {
      hear: (job) => this.#hearLoss(job),
      resumed: () => this.#listening.resolve(),
    })
  }

  /** Resolves when a cancellation would be heard, and after a moment without: the next renewal tells of it too. */
  async ready(): Promise<void> {
    const over = new AbortController()
    const isReady = Promise.all([this.#listening.promise, this.#meet()])
    await Promise.race([isReady, backgroundClock.sleep(LISTEN_MS, over.signal)])
    over.abort()
  }

  /** Jobs that other programs have added to these queues are counted and listed from now on, before any is claimed. */
  async #meet(): Promise<void> {
    const { types } = this.#subscription
    if (types === 'every' || types.length === 0) return
    const { database } = this.#core
    // A server whose memory is full refuses it; the first claim makes up for it.
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
      const { types, worker } = this.#subscription
      const claim: LostClaim = { token: nextToken(request.from), worker, types }
      const { leases, lookInMs } = await this.#core.lostClaims.guard(claim, () => this.#take(request, claim))
      if (signal.aborted) return this.#giveBack(leases, request, claim)
      for (const lease of leases) this.#held.set(nameOf(lease), lease)
      if (leases.length > 0) return leases
      // A reaper asks until nothing is left, so this is done once for each of its passes.
      if (request.from === 'expired' && isFirst) {
        await releaseStrandedJobs(this.#core.database, this.#subscription.types, signal)
        await finishBatches(this.#core.database, signal)
      }
      isFirst = false
      const leftMs = untilMs - clock.monotonicMs()
      if (leftMs <= 0) return []
      await this.#wait(Math.max(1, Math.min(leftMs, lookInMs ?? leftMs)), request, signal)
    }
    return []
  }

  async #wait(ms: number, { from }: ClaimRequest, signal: AbortSignal): Promise<void> {
    if (from === 'expired' || this.#doorbell === null) await this.#core.clock.sleep(Math.min(ms, EXPIRED_MS), signal)
    else await this.#doorbell.wait(ms, signal)
  }

  async #take(request: ClaimRequest, { token, worker, types }: LostClaim): Promise<Claimed> {
    const { database, clock, steps } = this.#core
    if (request.from === 'expired' || steps.isStepped) await steps.follow()
    const max = Math.min(request.max, CLAIM_MAX)
    const claiming = { database, clock, worker, token }
    if (request.from === 'expired') return claimExpired(claiming, types, max)
    return claimReady(claiming, this.#types(), { ...request, max })
  }

  #types(): readonly SubscribedType[] {
    return readyTypes(this.#subscription, 'redis')
  }

  /** The claim was ended while it was on its way: nobody would run what it brought. */
  async #giveBack(leases: readonly Lease[], { from }: ClaimRequest, claim: LostClaim): Promise<readonly Lease[]> {
    if (leases.length === 0) return []
    const { database, lostClaims } = this.#core
    const outcome = { kind: 'release', delayMs: 0, reason: 'the claim was ended' } as const
    const released = leases.map((lease) => ({ lease, outcome })).toReversed()
    // What a reaper took over must not be released: the start of its dead holder has counted.
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
    // From here on a loss is told by the answer, not by `onLost`.
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
    this.#bidFarewell(settlements, lost)
    return lost
  }

  /** Whoever in this process waits for a job that was removed as it finished finds it no more. */
  #bidFarewell(settlements: readonly Settlement[], lost: readonly Lost[]): void {
    const { removedViews, endings, clock } = this.#core
    const refused = new Set(lost.map(({ lease }) => lease.token))
    for (const { lease, outcome } of settlements) {
      if (refused.has(lease.token) || !removedViews.isExpected(lease.job.id)) continue
      const view = lastView(lease, outcome, clock.nowMs())
      if (view !== null) removedViews.tell(view)
    }
    endings.notify()
  }

  async report(lease: Lease, progress: string): Promise<boolean> {
    const report = (): Promise<boolean> => reportProgress(this.#core.database, lease, progress)
    return (await report()) || ((await this.#retake([lease])) && report())
  }

  /** What is refused because a step of the server's clock ended its lock is asked for once more, with the lock taken back. */
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

  onTrouble(listener: (error: unknown) => void): () => void {
    this.#troubles.add(listener)
    return () => void this.#troubles.delete(listener)
  }

  tellTrouble(error: unknown): void {
    for (const listener of this.#troubles) listener(error)
  }

  onLost(listener: (lost: Lost) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Somebody cancelled the job of this name. */
  #hearLoss(name: string): void {
    const lease = this.#held.get(name)
    if (lease === undefined) return
    this.#held.delete(name)
    for (const listener of this.#listeners) listener({ lease, reason: 'cancelled' })
  }

  /** A claim that waits ends at once; one that is on its way to the server is answered, and what it brings given back. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#stopListening()
    this.#doorbell?.close()
    await Promise.allSettled(this.#claims)
    this.#core.forget(this)
  }
}

/** As a cancellation is published. */
function nameOf({ job }: Lease): string {
  return `${queueOf(job.type)}:${bullId(job.type, job.id)}`
}

/** How a job ended that is removed with its end; null for an outcome after which a job stays. */
export function lastView({ job, attempt }: Lease, outcome: Outcome, nowMs: number): JobView | null {
  if ((outcome.kind !== 'complete' && outcome.kind !== 'dead') || outcome.keep !== 0) return null
  const isComplete = outcome.kind === 'complete'
  return {
    ...job,
    state: isComplete ? 'completed' : 'dead_letter',
    ended: null,
    attempt,
    replays: 0,
    progress: null,
    result: isComplete ? JSON.parse(outcome.result) : null,
    error: isComplete ? null : outcome.error,
    leaseOwner: null,
    leaseUntilMs: null,
    updatedAtMs: nowMs,
    startedAtMs: null,
    completedAtMs: nowMs,
    durationMs: isComplete ? outcome.durationMs : null,
  }
}
