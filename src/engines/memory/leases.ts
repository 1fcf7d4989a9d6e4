import { randomUUID } from 'node:crypto'
import { ChurnMap } from '../../engine/churn-map.ts'
import type { SubscribedType } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { REAPER_LEASE_MS } from '../../engine/subscriptions.ts'
import { type SharedSlots, slotGroup } from '../../job/slots.ts'
import type { Demand, Picked } from './backlog.ts'
import { type Claimant, type JobRow, toStoredJob } from './rows.ts'

/** A reaper may ask for every type. */
export type ExpiredDemand = Omit<Demand, 'types'> & { readonly types: readonly SubscribedType[] | 'every' }

/** The running jobs and their leases: the fence. */
export class Leases {
  readonly #rows = new ChurnMap<string, JobRow>()

  /** Gives the job to a claimant under a new token; an earlier holder loses it. */
  hold(row: JobRow, leaseMs: number, claimant: Claimant, nowMs: number): Lease {
    const expiresAtMs = nowMs + leaseMs
    const lease: Lease = { job: toStoredJob(row), attempt: row.attempt, token: randomUUID(), expiresAtMs }
    row.held = { ...claimant, lease, expiresAtMs }
    this.#rows.set(row.job.id, row)
    return lease
  }

  release(row: JobRow): void {
    row.held = null
    this.#rows.delete(row.job.id)
  }

  /** The fence: the same token, before its expiry, whether or not the job was reaped yet. */
  heldBy(lease: Lease, nowMs: number): JobRow | null {
    const row = this.#rows.get(lease.job.id)
    return row !== undefined && row.held?.lease.token === lease.token && isHeld(row, nowMs) ? row : null
  }

  extend(lease: Lease, leaseMs: number, nowMs: number): boolean {
    const row = this.heldBy(lease, nowMs)
    if (row === null || row.held === null) return false
    row.held.expiresAtMs = nowMs + leaseMs
    return true
  }

  /** At most `max` jobs whose lease expired, the longest expired first. */
  expired(demand: ExpiredDemand, nowMs: number): readonly Picked[] {
    const left = new Map(Object.entries(demand.perType))
    const picks: Picked[] = []
    const expired = [...this.#rows.values()].filter((row) => !isHeld(row, nowMs))
    for (const row of expired.sort((a, b) => endOf(a) - endOf(b))) {
      if (picks.length >= demand.max) break
      const leaseMs = leaseMsOf(row, demand)
      const room = left.get(row.job.type) ?? Number.POSITIVE_INFINITY
      if (leaseMs === null || room < 1) continue
      left.set(row.job.type, room - 1)
      picks.push({ row, leaseMs })
    }
    return picks
  }

  /** How many jobs of the type are held, in each group. An expired lease counts: its holder may still be at work. */
  running(type: string, slots: SharedSlots): Map<string, number> {
    const running = new Map<string, number>()
    for (const { job } of this.#rows.values()) {
      if (job.type !== type) continue
      const group = slotGroup(job.tenant, slots)
      running.set(group, (running.get(group) ?? 0) + 1)
    }
    return running
  }

  /** The clock was set by this much: the rest of every lease stays. */
  shift(ms: number): void {
    for (const row of this.#rows.values()) if (row.held !== null) row.held.expiresAtMs += ms
  }

  /** When `expired` may find something, if no lease is renewed meanwhile. */
  nextExpiryMs(demand: ExpiredDemand): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const row of this.#rows.values()) {
      if (leaseMsOf(row, demand) !== null) nextMs = Math.min(nextMs, endOf(row))
    }
    return nextMs
  }
}

function endOf(row: JobRow): number {
  return row.held?.expiresAtMs ?? 0
}

function isHeld(row: JobRow, nowMs: number): boolean {
  return endOf(row) > nowMs
}

/** Null for a type that the reaper did not ask for. */
function leaseMsOf(row: JobRow, demand: ExpiredDemand): number | null {
  if (demand.types === 'every') return REAPER_LEASE_MS
  return demand.types.find(({ type }) => type === row.job.type)?.leaseMs ?? null
}
