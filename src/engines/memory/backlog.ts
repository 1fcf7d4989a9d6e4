import type { SubscribedType } from '../../engine/engine.ts'
import { slotGroup } from '../../job/slots.ts'
import type { Leases } from './leases.ts'
import { RateLimits } from './rate-limits.ts'
import { type Age, isMoreUrgent, type JobRow } from './rows.ts'
import { TypeQueues } from './type-queues.ts'

export interface Demand {
  readonly types: readonly SubscribedType[]
  /** Bounds for single types; 0 leaves the type out. */
  readonly perType: Readonly<Record<string, number>>
  readonly max: number
  /** Null or left out: strict priority. */
  readonly ageingMs?: number | null
}

export interface Picked {
  readonly row: JobRow
  readonly leaseMs: number
}

/** The job of a type that is next, and the one by whose urgency the type is compared with others. */
interface Candidate {
  readonly row: JobRow
  readonly place: JobRow
}

/** What one claim may take of a type. */
interface Lane {
  readonly subscribed: SubscribedType
  /** How many more. */
  room: number
  /** The running jobs of each tenant, where each has slots of its own. */
  readonly running: Map<string, number> | null
}

/** The jobs that may be claimed, now or at their due time, and how fast and how many at once of each type. */
export class Backlog {
  readonly #queues = new TypeQueues()
  readonly #rates = new RateLimits()
  readonly #leases: Pick<Leases, 'running'>
  /** Types that were claimed with slots: the end of a lease may let another job start. */
  readonly #slotted = new Set<string>()

  constructor(leases: Pick<Leases, 'running'>) {
    this.#leases = leases
  }

  add(row: JobRow): void {
    this.#queues.add(row)
  }

  /** True if it was there. */
  remove(row: JobRow): boolean {
    return this.#queues.remove(row)
  }

  watchLimits(types: readonly SubscribedType[]): void {
    for (const { type, limit } of types) if (limit !== undefined) this.#rates.watch(type, limit)
  }

  /** The clock was set by this much: the windows of the limits move with it. */
  shiftLimits(ms: number): void {
    this.#rates.shift(ms)
  }

  /** Whether the end of a lease of this type may let a waiting claim take a job. */
  hasSlots(type: string): boolean {
    return this.#slotted.has(type)
  }

  /** Takes at most `max` due jobs, the most urgent of all types first. */
  take(demand: Demand, nowMs: number): readonly Picked[] {
    const lanes = demand.types.map((subscribed) => this.#lane(subscribed, demand, nowMs))
    const age = { nowMs, ageingMs: demand.ageingMs ?? null }
    const picks: Picked[] = []
    while (picks.length < demand.max) {
      let best: (Candidate & { readonly lane: Lane }) | null = null
      for (const lane of lanes) {
        const next = this.#next(lane, age)
        if (next !== null && (best === null || isMoreUrgent(next.place, best.place, age))) best = { ...next, lane }
      }
      if (best === null) break
      const { row, lane } = best
      lane.room -= 1
      lane.running?.set(groupOf(row), (lane.running.get(groupOf(row)) ?? 0) + 1)
      this.#queues.remove(row)
      this.#rates.count(row.job.type, nowMs)
      picks.push({ row, leaseMs: lane.subscribed.leaseMs })
    }
    return picks
  }

  #lane(subscribed: SubscribedType, demand: Demand, nowMs: number): Lane {
    const { type, limit, slots } = subscribed
    const bound = demand.perType[type] ?? Number.POSITIVE_INFINITY
    // It may have been set since the type was subscribed to.
    if (limit !== undefined) this.#rates.watch(type, limit)
    const room = limit === undefined ? bound : Math.min(bound, this.#rates.room(type, limit, nowMs))
    if (slots === undefined) return { subscribed, room, running: null }
    this.#slotted.add(type)
    const running = this.#leases.running(type, slots)
    if (slots.by !== null) return { subscribed, room, running }
    return { subscribed, room: Math.min(room, slots.max - (running.get('') ?? 0)), running: null }
  }

  #next({ subscribed: { type, slots }, room, running }: Lane, age: Age): Candidate | null {
    if (room <= 0) return null
    if (slots === undefined || running === null) {
      const row = this.#queues.head(type, age)
      return row === undefined ? null : { row, place: row }
    }
    let [best, fewest, place]: [JobRow | null, number, JobRow | null] = [null, slots.max, null]
    for (const [tenant, queue] of this.#queues.byTenant(type)) {
      const count = running.get(tenant) ?? 0
      const row = count < slots.max ? queue.head(age) : undefined
      if (row === undefined) continue
      if (place === null || isMoreUrgent(row, place, age)) place = row
      if (count > fewest || (count === fewest && best !== null && !isMoreUrgent(row, best, age))) continue
      best = row
      fewest = count
    }
    return best === null || place === null ? null : { row: best, place }
  }

  /** When a claim that found nothing may find something, if nothing is queued and no lease ends meanwhile. */
  nextMs(demand: Demand, nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const subscribed of demand.types) {
      const { type, limit } = subscribed
      if (demand.perType[type] === 0) continue
      const allowedMs = limit === undefined ? nowMs : this.#rates.nextMs(type, limit, nowMs)
      nextMs = Math.min(nextMs, Math.max(this.#dueMs(subscribed, nowMs), allowedMs))
    }
    return nextMs
  }

  /** When a job that has a slot is due. */
  #dueMs({ type, slots }: SubscribedType, nowMs: number): number {
    if (slots === undefined) return this.#queues.nextMs(type, nowMs)
    const running = this.#leases.running(type, slots)
    const isFull = (group: string): boolean => (running.get(group) ?? 0) >= slots.max
    if (slots.by === null) return isFull('') ? Number.POSITIVE_INFINITY : this.#queues.nextMs(type, nowMs)
    const open = [...this.#queues.byTenant(type)].filter(([tenant]) => !isFull(tenant))
    return open.reduce((nextMs, [, queue]) => Math.min(nextMs, queue.nextMs(nowMs)), Number.POSITIVE_INFINITY)
  }
}

function groupOf({ job: { tenant } }: JobRow): string {
  return slotGroup(tenant, { by: 'tenant' })
}
