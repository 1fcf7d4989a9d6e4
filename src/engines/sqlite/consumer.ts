import { ChurnMap } from '../../engine/churn-map.ts'
import type { ClaimRequest, Consumer, ConsumerListener, SubscribedType, Subscription } from '../../engine/engine.ts'
import type { Lease, Lost, Settlement } from '../../engine/outcome.ts'
import { readyTypes } from '../../engine/subscriptions.ts'
import { systemClock } from '../../time/clock.ts'
import { hasKeepLimit } from '../sql/keep-limits.ts'
import { claimReady, type NextDue, nextDue } from './claim.ts'
import type { SqliteCore } from './core.ts'
import { claimExpired, nextExpiry } from './expired.ts'
import { isBusy, toEngineError } from './faults.ts'
import { applyKeepLimits } from './keep-limits.ts'
import type { Bounds, Opening } from './lanes.ts'
import { FIND_LOST, renewLeases, reportProgress, toLost } from './leases.ts'
import { moveStarts } from './rate-limits.ts'
import { fromLeaseToken } from './rows.ts'
import { settleLeases } from './settle.ts'
import { TenantJobs } from './tenant-slots.ts'

/** Held leases are compared with the database at most this often, however often other processes commit. */
const LOST_CHECK_MS = 100

const READY: NextDue = { ready: true, nextMs: null }

export class SqliteConsumer implements Consumer {
  readonly looksAgain = true
  readonly #core: SqliteCore
  readonly #subscription: Subscription
  readonly #held = new ChurnMap<string, Lease>()
  /** Jobs given back whose settle is not acknowledged yet. They can be claimed again before it is. */
  readonly #returning = new Map<string, Promise<unknown>>()
  readonly #listeners = new Set<ConsumerListener>()
  readonly #closing = new AbortController()
  #unwatch: (() => void) | null = null
  #check: (() => void) | null = null
  /** The last claim found all it asked for, so the next one need not look first whether it is worth the write lock. */
  #hasMore = false
  /** When jobs were last claimed. */
  #takenAtMs = 0
  /** By type, where tenants have slots of their own. */
  readonly #tenantJobs = new Map<string, TenantJobs>()

  constructor(core: SqliteCore, subscription: Subscription) {
    this.#core = core
    this.#subscription = subscription
  }

  async claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const { clock, wakeups } = this.#core
    const untilMs = clock.monotonicMs() + request.waitMs
    const isOver = (): boolean => request.signal.aborted || this.#closing.signal.aborted
    while (!isOver()) {
      if (this.#core.isBehind) await this.#core.followClock()
      const unindexed = request.from === 'expired' ? undefined : this.#unindexed()
      if (unindexed !== undefined) {
        await this.#core.writeVolatile('claim', () => unindexed.createIndex(this.#core.mayChangeSchema))
        continue
      }
      const isSure = this.#hasMore && request.from !== 'expired'
      const next = isSure ? READY : await this.#core.read('claim', () => this.#nextDue(request))
      if (next.ready) {
        let settling: readonly Promise<unknown>[] = []
        const leases = await this.#core.writeInTurn('claim', 'volatile', () => {
          const taken = isOver() ? [] : this.#take(request)
          // Here, because a settle of the same transaction is acknowledged with this claim.
          settling = this.#returning.size === 0 ? [] : taken.flatMap(({ job }) => this.#returning.get(job.id) ?? [])
          return taken
        })
        for (const lease of leases) this.#held.set(lease.token, lease)
        if (settling.length > 0) await this.#returned(settling)
        if (leases.length > 0) {
          if (request.from !== 'expired' && this.#types().some(({ limit }) => limit !== undefined)) this.#moveStarts()
          return leases
        }
      }
      const leftMs = untilMs - clock.monotonicMs()
      if (leftMs <= 0) return []
      if (next === READY) continue
      const nextInMs = next.ready ? 0 : (next.nextMs ?? Number.POSITIVE_INFINITY) - clock.nowMs()
      // Only here: a signal that is made of others stays with them until a full collection.
      const signal = AbortSignal.any([request.signal, this.#closing.signal])
      await wakeups.wait(Math.max(1, Math.min(leftMs, nextInMs)), signal)
    }
    return []
  }

  /**
   * Runs after this turn of the event loop, in which the handlers start. If it fails, the window of the limit counts from
   * the claim, and the next claim reports the fault.
   */
  #moveStarts(): void {
    const { connection, clock } = this.#core
    const sinceMs = this.#takenAtMs
    setImmediate(() => {
      const move = (): void => moveStarts(connection, this.#types(), { sinceMs, nowMs: clock.nowMs() })
      void this.#core.writeVolatile('claim', move).catch(() => {})
    })
  }

  /**
   * A job's next start is handed out only after its last one was acknowledged, so that its holder sees them in order. The
   * extra turn of the event loop lets the caller that awaits the settle run first.
   */
  async #returned(settling: readonly Promise<unknown>[]): Promise<void> {
    await Promise.allSettled(settling)
    await new Promise<void>((resolve) => setImmediate(resolve))
  }

  #nextDue(request: ClaimRequest): NextDue {
    const { connection, clock } = this.#core
    this.#core.assertUsable()
    if (request.from === 'expired') return nextExpiry(connection, clock.nowMs())
    return nextDue(connection, this.#opening(request), clock.nowMs())
  }

  #take(request: ClaimRequest): readonly Lease[] {
    const { connection, clock } = this.#core
    this.#core.assertUsable()
    this.#hasMore = false
    const max = Math.min(request.max, this.#core.claimMax)
    if (request.from === 'expired') return claimExpired(connection, this.#subscription, max, clock.nowMs())
    this.#takenAtMs = clock.nowMs()
    const { worker, ageingMs = null } = this.#subscription
    const claiming = { ...this.#opening({ ...request, max }), worker, ageingMs }
    const leases = claimReady(connection, claiming, this.#takenAtMs)
    this.#hasMore = leases.length === max
    return leases
  }

  #opening(bounds: Bounds): Opening {
    return { types: this.#types(), bounds, tenantJobs: (type) => this.#tenantJobsOf(type) }
  }

  #tenantJobsOf(type: string): TenantJobs {
    const jobs = this.#tenantJobs.get(type) ?? new TenantJobs(this.#core.connection, type)
    this.#tenantJobs.set(type, jobs)
    return jobs
  }

  /** Before the first claim of a type whose tenants have slots of their own. */
  #unindexed(): TenantJobs | undefined {
    for (const { type, slots } of this.#types()) {
      if (slots?.by === 'tenant' && !this.#tenantJobsOf(type).isIndexed) return this.#tenantJobsOf(type)
    }
    return undefined
  }

  #types(): readonly SubscribedType[] {
    return readyTypes(this.#subscription, 'sqlite')
  }

  renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    if (leases.length === 0) return Promise.resolve([])
    return this.#core.writeVolatile('renew', () => renewLeases(this.#holder(), leases, leaseMs))
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Lost[]> {
    if (settlements.length === 0) return []
    // From here on the answer reports a loss, not a listener.
    for (const { lease } of settlements) this.#held.delete(lease.token)
    const removes = settlements.some(({ outcome }) => hasKeepLimit(outcome))
    const settling = this.#core.writeInTurn('settle', 'durable', (isAlone) => {
      const lost = settleLeases(this.#holder(), settlements, isAlone)
      if (removes) applyKeepLimits(this.#core, settlements, lost)
      return lost
    })
    const returning = settlements.filter(({ outcome }) => outcome.kind !== 'complete').map(({ lease }) => lease.job.id)
    for (const id of returning) this.#returning.set(id, settling)
    const lost = await settling.finally(() => {
      for (const id of returning) if (this.#returning.get(id) === settling) this.#returning.delete(id)
    })
    // Callers may wait for the result, for a released job or for a newer version of a latest key.
    this.#core.wakeups.notify()
    return lost
  }

  report(lease: Lease, progress: string): Promise<boolean> {
    return this.#core.writeVolatile('report', () => reportProgress(this.#holder(), lease, progress))
  }

  #holder() {
    return { connection: this.#core.connection, worker: this.#subscription.worker, nowMs: this.#core.clock.nowMs() }
  }

  listen(listener: ConsumerListener): () => void {
    this.#listeners.add(listener)
    this.#unwatch ??= this.#core.wakeups.watch(() => this.#findLostSoon())
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#unwatch?.()
      this.#unwatch = null
    }
  }

  /** Runs on every commit of another process, so the check is rationed. The last one is never skipped. */
  #findLostSoon(): void {
    if (this.#check !== null || this.#held.size === 0) return
    this.#check = systemClock.after(LOST_CHECK_MS, () => {
      this.#check = null
      this.findLost()
    })
  }

  /**
   * A cancellation changes the database, so each change is a reason to compare. It runs from a timer and after calls that
   * have taken effect, so it must not throw. The next renewal finds a lost lease too.
   */
  findLost(): void {
    if (this.#held.size === 0 || this.#listeners.size === 0) return
    try {
      this.#compareLeases()
    } catch (error) {
      if (isBusy(error)) this.#findLostSoon()
      else for (const { onTrouble } of this.#listeners) onTrouble?.(toEngineError(error, 'looking for lost leases'))
    }
  }

  #compareLeases(): void {
    const leases = [...this.#held.values()]
    const held = JSON.stringify(leases.map((lease) => [lease.job.id, fromLeaseToken(lease.token).token]))
    const { connection } = this.#core
    const gone = connection.prepare(FIND_LOST).all({ held }) as { id: string; token: string }[]
    for (const lease of leases) {
      if (!gone.some((row) => row.id === lease.job.id && lease.token.endsWith(row.token))) continue
      if (!this.#held.delete(lease.token)) continue
      const lost = toLost(connection, lease)
      for (const { onLost } of this.#listeners) onLost?.(lost)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#check?.()
    this.#unwatch?.()
    this.#unwatch = null
    this.#core.forget(this)
  }
}
