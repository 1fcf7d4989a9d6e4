import { ChurnMap } from '../../engine/churn-map.ts'
import type { ClaimRequest, Consumer, ConsumerListener, SubscribedType, Subscription } from '../../engine/engine.ts'
import { isExpired, type Lease, type Lost, type NotApplied, type Settlement } from '../../engine/outcome.ts'
import { readyTypes } from '../../engine/subscriptions.ts'
import { systemClock } from '../../time/clock.ts'
import { type Claimed, claimReady, newToken } from './claim.ts'
import type { PostgresCore } from './core.ts'
import { Cursors } from './cursors.ts'
import type { Queries } from './database.ts'
import { claimExpired, nextExpiryInMs } from './expired.ts'
import { findTaken, renewLeases, reportProgress } from './leases.ts'
import { nextDueInMs } from './look.ts'
import { isLimited, nameLimits } from './rate-limits.ts'
import { settleLeases } from './settle.ts'
import { Rounds } from './slots.ts'
import { type LostClaim, takeBackClaims } from './take-back.ts'

/** Rows per claim: a bigger one holds its locks longer than it saves. */
const CLAIM_MAX = 500
/** A due job that could not be claimed is locked by another claim, which ends within moments. */
const LOCKED_MS = 10
/** Renewals read the server's clock at most this often. */
const LOOK_MS = 2_000

/** A look that is not older counts as a new one. */
const LOOKED_MS = 5
/** … and this long after a claim that left nothing due: jobs with a time of their own reset the cursors when they come. */
const DUE_KNOWN_MS = 1_000

/** What the last look found, if no job was due. */
interface Look {
  readonly seen: number
  readonly resets: number
  readonly perType: ClaimRequest['perType']
  /** When the next job falls due; null if none waited. */
  readonly dueAtMs: number | null
  readonly atMs: number
}

export class PostgresConsumer implements Consumer {
  readonly isRemote = true
  readonly looksAgain = true
  readonly claimsAhead: boolean
  readonly tellsLost: boolean
  readonly #line: Queries
  readonly #core: PostgresCore
  readonly #subscription: Subscription
  readonly #held = new ChurnMap<string, Lease>()
  readonly #listeners = new Set<ConsumerListener>()
  readonly #closing = new AbortController()
  readonly #cursors = new Cursors()
  readonly #rounds = new Rounds()
  #looked: Look | null = null
  /** The changes seen by the last claim, if it took all that was due. */
  #emptied: number | null = null
  #hasLimits = false
  #looking = false
  #lookAgain = false

  constructor(core: PostgresCore, subscription: Subscription) {
    this.#core = core
    this.#subscription = subscription
    this.#line = core.database.inLine()
    this.claimsAhead = core.database.isPipelined
    this.tellsLost = subscription.types !== 'every'
  }

  async claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const { clock, wakeups } = this.#core
    const signal = AbortSignal.any([request.signal, this.#closing.signal])
    const untilMs = clock.monotonicMs() + request.waitMs
    let isMissed = false
    while (!signal.aborted) {
      const seen = wakeups.changes
      let dueInMs = await this.#expected(request, seen)
      let freeInMs: number | null = null
      if (dueInMs === 0) {
        const { worker } = this.#subscription
        const claim: LostClaim = { token: newToken(worker), worker, from: request.from ?? 'ready' }
        const claimed = await this.#core.lostClaims.guard(claim, () => this.#take(request, claim))
        const { leases } = claimed
        if (signal.aborted) return this.#giveBack(leases, claim)
        for (const lease of leases) this.#held.set(lease.token, lease)
        this.#emptied = leases.length < Math.min(request.max, CLAIM_MAX) ? seen : null
        if (leases.length > 0) return leases
        if (clock.monotonicMs() >= untilMs) return []
        freeInMs = claimed.freeInMs
        dueInMs = await this.#look(request, seen)
      } else if (clock.monotonicMs() >= untilMs) return []
      // A locked row is tried again in a moment; one held back by a rate limit when the limit allows it.
      const soonestMs = Math.min(
        freeInMs ?? Number.POSITIVE_INFINITY,
        dueInMs === null || (dueInMs === 0 && freeInMs !== null) ? Number.POSITIVE_INFINITY : dueInMs,
      )
      const leftMs = Math.min(untilMs - clock.monotonicMs(), this.#cursors.lookBackInMs)
      if (soonestMs === 0) {
        // Most likely it came between the claim and the look.
        if (isMissed) await systemClock.sleep(LOCKED_MS * (0.5 + Math.random()), signal)
        isMissed = !isMissed
      } else if (leftMs > 0) await wakeups.wait(Math.max(1, Math.min(leftMs, soonestMs)), { seen, signal })
    }
    return []
  }

  /**
   * In how many milliseconds to claim. Nothing was there at the last look or is left by the last claim, and nothing was heard
   * since: then a look, which writes nothing, comes before a claim.
   */
  #expected(request: ClaimRequest, seen: number): Promise<number | null> | 0 {
    const { waitMs, from } = request
    if ((this.#looked?.seen !== seen && this.#emptied !== seen) || waitMs === 0 || from === 'expired') return 0
    if (this.#cursors.isActive || this.#core.steps.isStepped || this.#types().some(isLimited)) return 0
    return this.#look(request, seen)
  }

  /** In how many milliseconds the next job falls due; null when none waits. */
  async #look(request: ClaimRequest, seen: number): Promise<number | null> {
    const { clock } = this.#core
    const { perType } = request
    const nowMs = clock.monotonicMs()
    const { resets } = this.#cursors
    const known = this.#dueAtMs(request, seen, nowMs)
    this.#emptied = null
    if (known !== undefined) return known === null ? null : known - nowMs
    const dueInMs = await this.#nextInMs(request)
    const dueAtMs = dueInMs === null ? null : nowMs + dueInMs
    this.#looked = dueInMs === 0 ? null : { seen, resets, perType, dueAtMs, atMs: nowMs }
    return dueInMs
  }

  /** What the last look found, if that still holds. */
  #dueAtMs({ perType }: ClaimRequest, seen: number, nowMs: number): number | null | undefined {
    const last = this.#looked
    if (last === null || last.perType !== undefined || perType !== undefined) return undefined
    const { dueAtMs, atMs, resets } = last
    if (dueAtMs !== null && dueAtMs <= nowMs) return undefined
    // The worker's next call follows at once on one that has looked last thing.
    if (last.seen === seen && nowMs - atMs < LOOKED_MS) return dueAtMs
    const isKnown = this.#emptied === seen && resets === this.#cursors.resets && nowMs - atMs < DUE_KNOWN_MS
    return isKnown && !this.#core.steps.isStepped ? dueAtMs : undefined
  }

  /** The claim was aborted while its statement was in flight: its jobs would never run. */
  async #giveBack(leases: readonly Lease[], claim: LostClaim): Promise<readonly Lease[]> {
    if (leases.length === 0) return []
    const core = this.#core
    const outcome = { kind: 'release', delayMs: 0, reason: 'the claim was ended' } as const
    const released = leases.map((lease) => ({ lease, outcome, worker: claim.worker }))
    await core.lostClaims.guard(claim, () =>
      core.call('claim', async (database) => {
        // An expired job must not be released: the start of its dead holder counts.
        if (claim.from === 'expired') await takeBackClaims(core, [claim])
        else await settleLeases(database, released, core.removedViews)
      }),
    )
    core.added({ mayPrecede: true })
    return []
  }

  #take(request: ClaimRequest, { token, worker }: LostClaim): Promise<Claimed> {
    const max = Math.min(request.max, CLAIM_MAX)
    const { steps, schema } = this.#core
    return this.#core.call('claim', async (database) => {
      schema.assertKnown()
      if (request.from === 'expired' || steps.isStepped) await steps.follow()
      if (request.from === 'expired') {
        return { leases: await claimExpired(database, this.#subscription, { max, token }), freeInMs: null }
      }
      const claiming = {
        line: this.#line,
        types: this.#types(),
        bounds: { ...request, max },
        worker,
        token,
        cursors: this.#cursors,
        rounds: this.#rounds,
        ageingMs: this.#subscription.ageingMs ?? null,
      }
      if (!this.#hasLimits) await nameLimits(database, claiming.types)
      this.#hasLimits = true
      const wasAhead = this.#cursors.isActive
      const claimed = await claimReady(database, claiming)
      if (!wasAhead || claimed.leases.length > 0) return claimed
      // There may be jobs before the cursor. Who waits can look a little later.
      if (request.waitMs > 0 && this.#cursors.lookBackInMs > 0) return claimed
      this.#cursors.reset()
      return claimReady(database, claiming)
    })
  }

  #nextInMs(request: ClaimRequest): Promise<number | null> {
    return this.#core.call('claim', (database) => {
      if (request.from === 'expired') return nextExpiryInMs(database, this.#subscription)
      this.#core.schema.assertKnownSoFar()
      // The claim itself says when a job with a free slot falls due.
      const types = this.#types().filter(({ slots }) => slots === undefined)
      return nextDueInMs(this.#core, types, request.perType, this.#cursors)
    })
  }

  #types(): readonly SubscribedType[] {
    return readyTypes(this.#subscription, 'postgres')
  }

  renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    if (leases.length === 0) return Promise.resolve([])
    const { steps } = this.#core
    return this.#core.call('renew', async (database) => {
      await steps.follow(LOOK_MS)
      return steps.ask(
        () => renewLeases(database, leases, leaseMs),
        (lost) => {
          if (!lost.some(isExpired)) return null
          const expired = lost.filter(isExpired).map(({ lease }) => lease)
          const others = lost.filter((one) => !isExpired(one))
          return async () => [...others, ...(await renewLeases(database, expired, leaseMs))]
        },
      )
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly NotApplied[]> {
    if (settlements.length === 0) return []
    // From here on the answer reports a loss, not a listener.
    for (const { lease } of settlements) this.#held.delete(lease.token)
    const { worker } = this.#subscription
    const settlings = settlements.map(({ lease, outcome }) => ({ lease, outcome, worker }))
    const answers = await this.#core.call('settle', () => this.#core.settles.add(settlings))
    // Callers may wait for the result. Jobs that were put back, or waited behind this one, may be claimed now.
    this.#core.results.notify()
    const addsWork = settlements.some(
      ({ lease: { job }, outcome }) =>
        outcome.kind !== 'complete' || job.latestKey !== null || this.#hasSlots(job.type),
    )
    if (addsWork) this.#core.added({ mayPrecede: true })
    return answers.filter((lost) => lost !== null)
  }

  #hasSlots(type: string): boolean {
    const { types } = this.#subscription
    return types !== 'every' && types.some((own) => own.slots !== undefined && own.type === type)
  }

  report(lease: Lease, progress: string): Promise<boolean> {
    return this.#core.call('report', (database) => {
      const report = (): Promise<boolean> => reportProgress(database, lease, progress)
      return this.#core.steps.ask(report, (isStored) => (isStored ? null : report))
    })
  }

  listen(listener: ConsumerListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  tellTrouble(error: unknown): void {
    for (const { onTrouble } of this.#listeners) onTrouble?.(error)
  }

  /** One check at a time. Requests made meanwhile are covered by one more. */
  findLost(): void {
    this.#lookAgain = true
    if (this.#looking) return
    this.#looking = true
    void this.#lookForLost()
      // The next renewal reports it too.
      .catch(() => {})
      .finally(() => {
        this.#looking = false
      })
  }

  async #lookForLost(): Promise<void> {
    while (this.#lookAgain) {
      this.#lookAgain = false
      if (this.#held.size === 0 || this.#listeners.size === 0) return
      const leases = [...this.#held.values()]
      for (const lost of await this.#core.call('looking for lost leases', (database) => findTaken(database, leases))) {
        if (!this.#held.delete(lost.lease.token)) continue
        for (const { onLost } of this.#listeners) onLost?.(lost)
      }
    }
  }

  resetCursors(): void {
    this.#cursors.reset()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#core.forget(this)
  }
}
