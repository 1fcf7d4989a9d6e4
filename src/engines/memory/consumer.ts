import type { ClaimRequest, Consumer, ConsumerListener, Subscription } from '../../engine/engine.ts'
import type { Lease, Lost, Settlement } from '../../engine/outcome.ts'
import { ClosedError, OptionError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { applyKeepLimits } from './retention.ts'
import type { Claimant } from './rows.ts'
import type { MemoryStore } from './store.ts'
import { onAbort } from './wakeups.ts'

export interface ConsumerParts {
  readonly store: MemoryStore
  readonly clock: Clock
  readonly subscription: Subscription
  /** Aborts when the engine is closed. */
  readonly engineClosed: AbortSignal
}

/** One look of a claim: what it takes now, and when to look again. */
interface Attempt {
  take(nowMs: number): readonly Lease[]
  nextMs(nowMs: number): number
}

export class MemoryConsumer implements Consumer {
  readonly #parts: ConsumerParts
  readonly #claimant: Claimant
  readonly #listeners = new Set<ConsumerListener>()
  readonly #closing = new AbortController()

  constructor(parts: ConsumerParts) {
    this.#parts = parts
    this.#claimant = { worker: parts.subscription.worker, onLost: (lost) => this.#tell(lost) }
    if (parts.subscription.types !== 'every') parts.store.watchLimits(parts.subscription.types)
  }

  async claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const attempt = this.#attempt(request)
    const stops = [request.signal, this.#closing.signal, this.#parts.engineClosed]
    if (request.max < 1 || stops.some((stop) => stop.aborted)) return []
    const leases = attempt.take(this.#nowMs())
    return leases.length > 0 || request.waitMs <= 0 ? leases : this.#waitFor(attempt, request.waitMs, stops)
  }

  #attempt(request: ClaimRequest): Attempt {
    const { store, subscription } = this.#parts
    const bounds = { max: request.max, perType: request.perType ?? {} }
    if (request.from === 'expired') {
      const demand = { ...bounds, types: subscription.types }
      return {
        take: (nowMs) => store.claimExpired(demand, this.#claimant, nowMs),
        nextMs: () => store.nextExpiryMs(demand),
      }
    }
    if (subscription.types === 'every') {
      throw new OptionError(`a subscription to every type is for reaping; claim from 'expired', or name the types`)
    }
    const demand = { ...bounds, types: subscription.types, ageingMs: subscription.ageingMs ?? null }
    return {
      take: (nowMs) => store.claim(demand, this.#claimant, nowMs),
      nextMs: (nowMs) => store.nextClaimMs(demand, nowMs),
    }
  }

  /** Sleeps until a job is queued or falls due, or a lease expires; it does not poll. */
  #waitFor(attempt: Attempt, waitMs: number, stops: readonly AbortSignal[]): Promise<readonly Lease[]> {
    const { store, clock } = this.#parts
    const deadlineMs = clock.monotonicMs() + waitMs
    return new Promise((resolve) => {
      let cancelTimer = (): void => {}
      const finish = (leases: readonly Lease[]): void => {
        cancelTimer()
        stopListening()
        stopAborting()
        resolve(leases)
      }
      const look = (): void => {
        cancelTimer()
        const nowMs = this.#nowMs()
        const leases = attempt.take(nowMs)
        if (leases.length > 0 || clock.monotonicMs() >= deadlineMs) finish(leases)
        else arm(nowMs)
      }
      const arm = (nowMs: number): void => {
        const leftMs = Math.min(deadlineMs - clock.monotonicMs(), attempt.nextMs(nowMs) - nowMs)
        // What can be claimed at this moment was claimed, so at least a tick passes before the next look.
        cancelTimer = clock.after(Math.max(1, leftMs), look)
      }
      const stopListening = store.wakeups.onQueued(look)
      const stopAborting = onAbort(stops, () => finish([]))
      arm(clock.nowMs())
    })
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    const nowMs = this.#openNowMs()
    return leases.flatMap((lease) => {
      const reason = this.#parts.store.renew(lease, leaseMs, nowMs)
      return reason === null ? [] : [{ lease, reason }]
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Lost[]> {
    const nowMs = this.#openNowMs()
    const { store } = this.#parts
    const settled = settlements.map(({ lease, outcome }) => ({
      lease,
      outcome,
      reason: store.settle(lease, outcome, nowMs),
    }))
    for (const { lease, outcome, reason } of settled) {
      if (reason === null) applyKeepLimits(store, lease.job, outcome, nowMs)
    }
    // Not before: half a batch would hand out what is less urgent than its rest.
    store.wakeups.wakeClaims()
    return settled.flatMap(({ lease, reason }) => (reason === null ? [] : [{ lease, reason }]))
  }

  async report(lease: Lease, progress: string): Promise<boolean> {
    return this.#parts.store.report(lease, progress, this.#openNowMs())
  }

  listen(listener: ConsumerListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Called after the step that caused it, so a listener may call back into the engine. */
  #tell(lost: Lost): void {
    queueMicrotask(() => {
      for (const { onLost } of this.#listeners) onLost?.(lost)
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  #openNowMs(): number {
    if (this.#parts.engineClosed.aborted) throw new ClosedError('the memory engine')
    return this.#nowMs()
  }

  #nowMs(): number {
    const { store, clock } = this.#parts
    store.clock.follow(clock)
    return clock.nowMs()
  }
}
