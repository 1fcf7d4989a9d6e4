import type { Consumer } from '../engine/engine.ts'
import type { Lease, Lost, LostReason } from '../engine/outcome.ts'
import { PassingMap } from '../engine/passing-map.ts'
import type { Clock } from '../time/clock.ts'

/** A lease to be kept, with what keeping it needs. The handle names it between two threads. */
export interface Renewable {
  readonly handle: number
  /** Read only when the lease is renewed: most jobs are over before, so it may be made when asked for. */
  readonly lease: Lease
  readonly leaseMs: number
  /** Renewal ends this long after the hold began, so that a handler stuck for ever loses its lease (I6). */
  readonly timeoutMs: number
}

interface Kept {
  readonly renewable: Renewable
  readonly heldAtMs: number
  readonly untilMs: number
  /** When the lease has surely run out, unless the store answers to a renewal before. */
  expiresAtMs: number
}

interface Group {
  readonly leaseMs: number
  readonly kept: PassingMap<number, Kept>
  cancel: (() => void) | null
  renewing: boolean
}

export interface RenewalsParts {
  readonly clock: Clock
  readonly consumer: Pick<Consumer, 'renew'>
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

  /** For leases that expire: one that the engine watches itself needs no renewal. */
  hold(leases: Iterable<Renewable>): void {
    const nowMs = this.#parts.clock.monotonicMs()
    if (this.#closed) return
    for (const renewable of leases) {
      const { handle, leaseMs, timeoutMs } = renewable
      const group = this.#group(leaseMs)
      group.kept.set(handle, {
        renewable,
        heldAtMs: nowMs,
        untilMs: nowMs + timeoutMs,
        expiresAtMs: nowMs + leaseMs,
      })
      if (group.cancel === null) this.#arm(group, leaseMs / 3)
    }
  }

  drop(handles: readonly number[]): void {
    for (const group of this.#groups.values()) for (const handle of handles) group.kept.delete(handle)
  }

  close(): void {
    this.#closed = true
    for (const group of this.#groups.values()) group.cancel?.()
    this.#groups.clear()
  }

  #group(leaseMs: number): Group {
    let group = this.#groups.get(leaseMs)
    if (group === undefined) {
      group = { leaseMs, kept: new PassingMap(), cancel: null, renewing: false }
      this.#groups.set(leaseMs, group)
    }
    return group
  }

  #arm(group: Group, ms: number): void {
    if (this.#closed) return
    group.cancel?.()
    group.cancel = this.#parts.clock.after(ms, () => {
      group.cancel = null
      // With nothing held the group sleeps until the next hold.
      if (group.kept.size === 0) return
      this.#arm(group, group.leaseMs / 3)
      this.#expire(group)
      void this.#renew(group)
    })
  }

  async #renew(group: Group): Promise<void> {
    if (group.renewing) return
    const due = this.#due(group)
    if (due.length === 0) return
    group.renewing = true
    const askedAtMs = this.#parts.clock.monotonicMs()
    try {
      const leases = due.map(({ renewable }) => renewable.lease)
      for (const lost of await this.#parts.consumer.renew(leases, group.leaseMs)) this.#lose(group, lost)
      for (const kept of due) kept.expiresAtMs = askedAtMs + group.leaseMs
    } catch (error) {
      this.#parts.onError(error)
      this.#expire(group)
      this.#arm(group, Math.min(group.leaseMs / 10, RETRY_MS_MAX))
    } finally {
      group.renewing = false
    }
  }

  #due(group: Group): readonly Kept[] {
    const nowMs = this.#parts.clock.monotonicMs()
    const due: Kept[] = []
    for (const [handle, kept] of group.kept) {
      if (kept.untilMs <= nowMs) group.kept.delete(handle)
      else if (nowMs - kept.heldAtMs >= group.leaseMs / 6) due.push(kept)
    }
    return due
  }

  /** While the store does not answer nobody can say that a lease is lost, but after its time it is (I3). */
  #expire(group: Group): void {
    const nowMs = this.#parts.clock.monotonicMs()
    for (const [handle, { expiresAtMs }] of group.kept) {
      if (nowMs < expiresAtMs) continue
      group.kept.delete(handle)
      this.#parts.onLost(handle, 'expired')
    }
  }

  #lose(group: Group, lost: Lost): void {
    for (const [handle, { renewable }] of group.kept) {
      const { lease } = renewable
      if (lease.token !== lost.lease.token || lease.job.id !== lost.lease.job.id) continue
      group.kept.delete(handle)
      this.#parts.onLost(handle, lost.reason)
      return
    }
  }
}
