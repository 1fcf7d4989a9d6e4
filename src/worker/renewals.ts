import type { Consumer } from '../engine/engine.ts'
import type { Lease, Lost, LostReason } from '../engine/outcome.ts'
import type { Clock } from '../time/clock.ts'

/** A lease to renew. The handle identifies it across threads. */
export interface Renewable {
  readonly handle: number
  /** Read only on renewal. Most jobs end before, so an implementation may create it on demand. */
  readonly lease: Lease
  readonly leaseMs: number
  /** On the monotonic clock. */
  readonly heldAtMs: number
  /** Renewal ends this long after the claim, so that a handler that never returns loses its lease. */
  readonly timeoutMs: number
  /** When the lease was last extended: the claim, then the request time of each confirmed renewal. */
  renewedAtMs: number
}

interface Group {
  readonly leaseMs: number
  cancel: () => void
  renewing: boolean
}

export interface RenewalsParts {
  readonly clock: Clock
  readonly consumer: Pick<Consumer, 'renew'>
  /** All leases held now that expire. Called when a renewal is due. */
  held(): Iterable<Renewable>
  /** The lease is gone. */
  onLost(handle: number, reason: LostReason): void
  onError(error: unknown): void
}

/** The longest wait before a failed renewal is retried, so that one failure does not cost the lease. */
const RETRY_MS_MAX = 1_000

/**
 * Renews leases: one `renew` call for all leases of the same length, every third of that length. A lease younger than a
 * sixth waits for the next round, because most jobs end before. So an unrenewed lease is at most half its length old,
 * and the other half is left for a slow store.
 */
export class Renewals {
  readonly #parts: RenewalsParts
  readonly #groups = new Map<number, Group>()
  #closed = false

  constructor(parts: RenewalsParts) {
    this.#parts = parts
  }

  /** From now on, leases of this length may be held. */
  watch(leaseMs: number): void {
    if (this.#closed || this.#groups.has(leaseMs)) return
    const group: Group = { leaseMs, cancel: () => {}, renewing: false }
    this.#groups.set(leaseMs, group)
    this.#arm(group, leaseMs / 3)
  }

  close(): void {
    this.#closed = true
    for (const group of this.#groups.values()) group.cancel()
    this.#groups.clear()
  }

  #arm(group: Group, ms: number): void {
    if (this.#closed) return
    group.cancel()
    group.cancel = this.#parts.clock.after(ms, () => {
      this.#arm(group, group.leaseMs / 3)
      this.#expire(group)
      void this.#renew(group)
    })
  }

  #held({ leaseMs: length }: Group): readonly Renewable[] {
    const nowMs = this.#parts.clock.monotonicMs()
    return [...this.#parts.held()].filter(
      ({ leaseMs, heldAtMs, timeoutMs }) => leaseMs === length && nowMs < heldAtMs + timeoutMs,
    )
  }

  async #renew(group: Group): Promise<void> {
    if (group.renewing) return
    const { clock, consumer, onError } = this.#parts
    const { leaseMs } = group
    const askedAtMs = clock.monotonicMs()
    const due = this.#held(group).filter(({ heldAtMs }) => askedAtMs - heldAtMs >= leaseMs / 6)
    if (due.length === 0) return
    group.renewing = true
    try {
      const leases = due.map(({ lease }) => lease)
      for (const lost of await consumer.renew(leases, leaseMs)) this.#lose(due, lost)
      for (const renewable of due) renewable.renewedAtMs = askedAtMs
    } catch (error) {
      onError(error)
      this.#expire(group)
      this.#arm(group, Math.min(leaseMs / 10, RETRY_MS_MAX))
    } finally {
      group.renewing = false
    }
  }

  /** While the store does not answer, a lease counts as lost once its time is over. */
  #expire(group: Group): void {
    const nowMs = this.#parts.clock.monotonicMs()
    for (const { handle, renewedAtMs, leaseMs } of this.#held(group))
      if (nowMs >= renewedAtMs + leaseMs) this.#parts.onLost(handle, 'expired')
  }

  #lose(due: readonly Renewable[], { lease, reason }: Lost): void {
    const lost = due.find((each) => each.lease.token === lease.token && each.lease.job.id === lease.job.id)
    if (lost !== undefined) this.#parts.onLost(lost.handle, reason)
  }
}
