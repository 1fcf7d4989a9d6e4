import { Heap } from './heap.ts'
import { isDueBefore, isMoreUrgent, type JobRow } from './rows.ts'

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
