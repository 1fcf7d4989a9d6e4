import type { SubscribedType } from '../../engine/engine.ts'
import { Heap } from './heap.ts'
import { RateLimits } from './rate-limits.ts'
import { isDueBefore, isMoreUrgent, type JobRow } from './rows.ts'

/** What a claim asks for. */
export interface Demand {
  readonly types: readonly SubscribedType[]
  /** A bound for single types; 0 leaves the type out. */
  readonly perType: Readonly<Record<string, number>>
  readonly max: number
}

export interface Pick {
  readonly row: JobRow
  readonly leaseMs: number
}

/** The jobs that may be claimed, now or at their due time, and how fast each type may be claimed. */
export class Backlog {
  readonly #lanes = new Lanes()
  readonly #rates = new RateLimits()

  add(row: JobRow): void {
    this.#lanes.add(row)
  }

  /** Whether it was there. */
  remove(row: JobRow): boolean {
    return this.#lanes.remove(row)
  }

  watchLimits(types: readonly SubscribedType[]): void {
    for (const { type, limit } of types) if (limit !== undefined) this.#rates.watch(type, limit)
  }

  /** The clock was set by so much: the windows of the limits go with it. */
  shiftLimits(ms: number): void {
    this.#rates.shift(ms)
  }

  /** Takes out at most `max` jobs that are due, the most urgent over all the types first. */
  take(demand: Demand, nowMs: number): readonly Pick[] {
    const lanes = demand.types.map((subscribed) => ({ subscribed, room: this.#room(subscribed, demand, nowMs) }))
    const picks: Pick[] = []
    while (picks.length < demand.max) {
      let best: { row: JobRow; lane: (typeof lanes)[number] } | null = null
      for (const lane of lanes) {
        const row = lane.room > 0 ? this.#lanes.head(lane.subscribed.type, nowMs) : undefined
        if (row !== undefined && (best === null || isMoreUrgent(row, best.row))) best = { row, lane }
      }
      if (best === null) break
      best.lane.room -= 1
      this.#lanes.remove(best.row)
      this.#rates.count(best.row.job.type, nowMs)
      picks.push({ row: best.row, leaseMs: best.lane.subscribed.leaseMs })
    }
    return picks
  }

  #room({ type, limit }: SubscribedType, demand: Demand, nowMs: number): number {
    const bound = demand.perType[type] ?? Number.POSITIVE_INFINITY
    return limit === undefined ? bound : Math.min(bound, this.#rates.room(type, limit, nowMs))
  }

  /** When a claim that found nothing could find something, should nothing be queued meanwhile. */
  nextMs(demand: Demand, nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const { type, limit } of demand.types) {
      if (demand.perType[type] === 0) continue
      const isReady = this.#lanes.head(type, nowMs) !== undefined
      const dueMs = isReady ? nowMs : this.#lanes.nextDueMs(type)
      const allowedMs = limit === undefined ? nowMs : this.#rates.nextMs(type, limit, nowMs)
      nextMs = Math.min(nextMs, Math.max(dueMs, allowedMs))
    }
    return nextMs
  }
}

/** The claimable and the delayed jobs of one type. A job is in at most one of the two heaps. */
class Lane {
  readonly #ready = new Heap<JobRow>(isMoreUrgent)
  readonly #delayed = new Heap<JobRow>(isDueBefore)

  add(row: JobRow): void {
    this.#delayed.push(row)
  }

  remove(row: JobRow): boolean {
    return this.#ready.remove(row) || this.#delayed.remove(row)
  }

  /** The most urgent job that is due. */
  head(nowMs: number): JobRow | undefined {
    for (let next = this.#delayed.first; next !== undefined && next.dueMs <= nowMs; next = this.#delayed.first) {
      this.#delayed.remove(next)
      this.#ready.push(next)
    }
    return this.#ready.first
  }

  /** When the next delayed job falls due. */
  get nextDueMs(): number {
    return this.#delayed.first?.dueMs ?? Number.POSITIVE_INFINITY
  }
}

/** Every job that may be claimed now or at its due time, by type, so that a claim never walks other types' jobs. */
export class Lanes {
  readonly #byType = new Map<string, Lane>()

  add(row: JobRow): void {
    const lane = this.#byType.get(row.job.type) ?? new Lane()
    this.#byType.set(row.job.type, lane)
    lane.add(row)
  }

  /** Whether it stood in a lane. */
  remove(row: JobRow): boolean {
    return this.#byType.get(row.job.type)?.remove(row) ?? false
  }

  head(type: string, nowMs: number): JobRow | undefined {
    return this.#byType.get(type)?.head(nowMs)
  }

  nextDueMs(type: string): number {
    return this.#byType.get(type)?.nextDueMs ?? Number.POSITIVE_INFINITY
  }
}
