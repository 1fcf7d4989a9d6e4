import type { Consumer } from '../engine/engine.ts'
import type { Lease, Lost, LostReason } from '../engine/outcome.ts'
import type { Clock } from '../time/clock.ts'

/** A lease to be kept, with what keeping it needs. The handle names it between two threads. */
export interface Renewable {
  readonly handle: number
  /** Read only when the lease is renewed: most jobs are over before, so it may be made when asked for. */
  readonly lease: Lease
  readonly leaseMs: number
  /** On the monotonic clock. */
  readonly heldAtMs: number
  /** Renewal ends this long after the hold began, so that a handler stuck for ever loses its lease (I6). */
  readonly timeoutMs: number
  /** When its time began: when it was held, and then when each renewal was asked for that the store has answered to. */
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
  /** All leases held now that expire. It is asked when a renewal is due: most jobs are over by then. */
  held(): Iterable<Renewable>
  /** It is not held any more. */
  onLost(handle: number, reason: LostReason): void
  onError(error: unknown): void
}

/** After a failed renewal the next try comes this soon at the latest, so that one fault does not cost the lease. */
const RETRY_MS_MAX = 1_000

/**
 * Keeps leases alive: one `renew` call for all leases of the same length, every third of that length. A lease younger
 * than a sixth is left for the next round: most jobs are over before it matters. The oldest unrenewed lease is
 * therefore half its length old, which leaves the other half for a store that answers slowly.
 */
export class Renewals {
  readonly #parts: RenewalsParts
  readonly #groups = new Map<number, Group>()
  #closed = false

  constructor(parts: RenewalsParts) {
    this.#parts = parts
  }

  /** Leases of this length may be held from now on. */
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

  /** While the store does not answer nobody can say that a lease is lost, but after its time it is (I3). */
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
