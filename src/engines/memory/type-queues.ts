import { slotGroup } from '../../job/slots.ts'
import { Heap } from './heap.ts'
import { type Age, isDueBefore, isMoreUrgent, type JobRow } from './rows.ts'

/** Claimable and delayed jobs. A job is in at most one of the two heaps. */
export class Queue {
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

  /** When a job may be claimed: now, or when the next delayed one falls due. */
  nextMs(nowMs: number): number {
    if (this.head({ nowMs, ageingMs: null }) !== undefined) return nowMs
    return this.#delayed.first?.dueMs ?? Number.POSITIVE_INFINITY
  }

  get isEmpty(): boolean {
    return this.#delayed.first === undefined && [...this.#ready.values()].every(({ first }) => first === undefined)
  }

  /** Takes all jobs out. */
  *drain(): Iterable<JobRow> {
    for (const heap of [this.#delayed, ...this.#ready.values()]) {
      for (let { first } = heap; first !== undefined; first = heap.first) {
        heap.remove(first)
        yield first
      }
    }
  }
}

/** The jobs of one type: in one queue, or from the first claim by tenant on in one for each tenant. */
class TypeQueue {
  readonly #queues = new Map<string, Queue>()
  #by: 'tenant' | null = null

  add(row: JobRow): void {
    const group = slotGroup(row.job.tenant, { by: this.#by })
    const queue = this.#queues.get(group) ?? new Queue()
    this.#queues.set(group, queue)
    queue.add(row)
  }

  remove(row: JobRow): boolean {
    const group = slotGroup(row.job.tenant, { by: this.#by })
    const queue = this.#queues.get(group)
    if (queue === undefined || !queue.remove(row)) return false
    // Tenants come and go; the one queue of a type stays.
    if (this.#by !== null && queue.isEmpty) this.#queues.delete(group)
    return true
  }

  get all(): Iterable<Queue> {
    return this.#queues.values()
  }

  get byTenant(): ReadonlyMap<string, Queue> {
    if (this.#by === null) {
      const rows = [...this.#queues.values()].flatMap((queue) => [...queue.drain()])
      this.#queues.clear()
      this.#by = 'tenant'
      for (const row of rows) this.add(row)
    }
    return this.#queues
  }
}

/** Claimable jobs by type, so a claim never walks the jobs of other types. */
export class TypeQueues {
  readonly #byType = new Map<string, TypeQueue>()

  add(row: JobRow): void {
    this.#of(row.job.type).add(row)
  }

  /** True if it was queued. */
  remove(row: JobRow): boolean {
    return this.#byType.get(row.job.type)?.remove(row) ?? false
  }

  head(type: string, age: Age): JobRow | undefined {
    let best: JobRow | undefined
    for (const queue of this.#byType.get(type)?.all ?? []) {
      const row = queue.head(age)
      if (row !== undefined && (best === undefined || isMoreUrgent(row, best, age))) best = row
    }
    return best
  }

  nextMs(type: string, nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const queue of this.#byType.get(type)?.all ?? []) nextMs = Math.min(nextMs, queue.nextMs(nowMs))
    return nextMs
  }

  /** By `orgId`; the empty one has the jobs without a tenant. */
  byTenant(type: string): ReadonlyMap<string, Queue> {
    return this.#of(type).byTenant
  }

  #of(type: string): TypeQueue {
    const queue = this.#byType.get(type) ?? new TypeQueue()
    this.#byType.set(type, queue)
    return queue
  }
}
