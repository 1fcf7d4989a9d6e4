import type { SubscribedType } from '../../engine/engine.ts'
import { Heap } from './heap.ts'
import { RateLimits } from './rate-limits.ts'
import { type Age, isDueBefore, isMoreUrgent, type JobRow } from './rows.ts'

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

/** The jobs that may be claimed, now or at their due time, and how fast each type may be claimed. */
export class Backlog {
  readonly #queues = new TypeQueues()
  readonly #rates = new RateLimits()

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

  /** Takes at most `max` due jobs, the most urgent of all types first. */
  take(demand: Demand, nowMs: number): readonly Picked[] {
    const queues = demand.types.map((subscribed) => ({ subscribed, room: this.#room(subscribed, demand, nowMs) }))
    const age = { nowMs, ageingMs: demand.ageingMs ?? null }
    const picks: Picked[] = []
    while (picks.length < demand.max) {
      let best: { row: JobRow; queue: (typeof queues)[number] } | null = null
      for (const queue of queues) {
        const row = queue.room > 0 ? this.#queues.head(queue.subscribed.type, age) : undefined
        if (row !== undefined && (best === null || isMoreUrgent(row, best.row, age))) best = { row, queue }
      }
      if (best === null) break
      best.queue.room -= 1
      this.#queues.remove(best.row)
      this.#rates.count(best.row.job.type, nowMs)
      picks.push({ row: best.row, leaseMs: best.queue.subscribed.leaseMs })
    }
    return picks
  }

  #room({ type, limit }: SubscribedType, demand: Demand, nowMs: number): number {
    const bound = demand.perType[type] ?? Number.POSITIVE_INFINITY
    if (limit === undefined) return bound
    // It may have been set since the type was subscribed to.
    this.#rates.watch(type, limit)
    return Math.min(bound, this.#rates.room(type, limit, nowMs))
  }

  /** When a claim that found nothing may find something, if nothing is queued meanwhile. */
  nextMs(demand: Demand, nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const { type, limit } of demand.types) {
      if (demand.perType[type] === 0) continue
      const isReady = this.#queues.isReady(type, nowMs)
      const dueMs = isReady ? nowMs : this.#queues.nextDueMs(type)
      const allowedMs = limit === undefined ? nowMs : this.#rates.nextMs(type, limit, nowMs)
      nextMs = Math.min(nextMs, Math.max(dueMs, allowedMs))
    }
    return nextMs
  }
}

/** The claimable and the delayed jobs of one type. A job is in at most one of the two heaps. */
class TypeQueue {
  /** By priority, each in order of due time. */
  readonly #ready = new Map<number, Heap<JobRow>>()
  readonly #delayed = new Heap<JobRow>(isDueBefore)

  add(row: JobRow): void {
    this.#delayed.push(row)
  }

  remove(row: JobRow): boolean {
    return this.#ready.get(row.job.priority)?.remove(row) || this.#delayed.remove(row)
  }

  /** The most urgent job that is due. */
  head(age: Age): JobRow | undefined {
    for (let next = this.#delayed.first; next !== undefined && next.dueMs <= age.nowMs; next = this.#delayed.first) {
      this.#delayed.remove(next)
      this.#lane(next.job.priority).push(next)
    }
    let best: JobRow | undefined
    for (const { first } of this.#ready.values()) {
      if (first !== undefined && (best === undefined || isMoreUrgent(first, best, age))) best = first
    }
    return best
  }

  #lane(priority: number): Heap<JobRow> {
    const lane = this.#ready.get(priority) ?? new Heap<JobRow>(isDueBefore)
    this.#ready.set(priority, lane)
    return lane
  }

  /** When the next delayed job falls due. */
  get nextDueMs(): number {
    return this.#delayed.first?.dueMs ?? Number.POSITIVE_INFINITY
  }
}

/** Claimable jobs by type, so a claim never walks the jobs of other types. */
export class TypeQueues {
  readonly #byType = new Map<string, TypeQueue>()

  add(row: JobRow): void {
    const queue = this.#byType.get(row.job.type) ?? new TypeQueue()
    this.#byType.set(row.job.type, queue)
    queue.add(row)
  }

  /** True if it was queued. */
  remove(row: JobRow): boolean {
    return this.#byType.get(row.job.type)?.remove(row) ?? false
  }

  head(type: string, age: Age): JobRow | undefined {
    return this.#byType.get(type)?.head(age)
  }

  isReady(type: string, nowMs: number): boolean {
    return this.head(type, { nowMs, ageingMs: null }) !== undefined
  }

  nextDueMs(type: string): number {
    return this.#byType.get(type)?.nextDueMs ?? Number.POSITIVE_INFINITY
  }
}
