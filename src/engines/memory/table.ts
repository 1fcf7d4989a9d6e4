import type { Counts, JobFilter, TypeCounts } from '../../engine/engine.ts'
import { isDead, type JobRow } from './rows.ts'

const NO_JOBS: TypeCounts = Object.freeze({ ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 })

/** Every job that the store holds, and how long it holds the finished ones. */
export class JobTable {
  readonly #rows = new Map<string, JobRow>()
  /** The live job of each idempotency key. */
  readonly #liveByKey = new Map<string, JobRow>()
  /** Completed, cancelled, superseded: in the order of their end, the oldest leave first. */
  readonly #finished = new Set<JobRow>()
  /** In the order of their death. Kept until they are replayed: a dead letter is never dropped by itself (I9). */
  readonly #dead = new Set<JobRow>()
  readonly #finishedMax: number

  constructor(finishedMax: number) {
    this.#finishedMax = finishedMax
  }

  get(id: string): JobRow | null {
    return this.#rows.get(id) ?? null
  }

  liveOf(key: string | null): JobRow | null {
    return key === null ? null : (this.#liveByKey.get(key) ?? null)
  }

  add(row: JobRow): void {
    this.#rows.set(row.job.id, row)
    this.#takeKey(row)
  }

  /** Files a row by its final state and frees its idempotency key (X093). Returns the rows that had to make room. */
  finish(row: JobRow): readonly JobRow[] {
    const { key } = row.job
    if (key !== null && this.#liveByKey.get(key) === row) this.#liveByKey.delete(key)
    if (isDead(row)) {
      this.#dead.add(row)
      return []
    }
    this.#finished.add(row)
    return this.#trim()
  }

  #trim(): readonly JobRow[] {
    const gone: JobRow[] = []
    for (const oldest of this.#finished) {
      if (this.#finished.size <= this.#finishedMax) break
      this.#finished.delete(oldest)
      this.#rows.delete(oldest.job.id)
      gone.push(oldest)
    }
    return gone
  }

  /** A dead letter lives again. Its key is its own again unless another live job has it by now. */
  revive(row: JobRow): void {
    this.#dead.delete(row)
    this.#takeKey(row)
  }

  #takeKey(row: JobRow): void {
    const { key } = row.job
    if (key !== null && !this.#liveByKey.has(key)) this.#liveByKey.set(key, row)
  }

  /** Newest first, by id. */
  list(filter: JobFilter): readonly JobRow[] {
    const { state, type, before, limit } = filter
    return [...this.#rows.values()]
      .filter((row) => state === undefined || row.state === state)
      .filter((row) => type === undefined || row.job.type === type)
      .filter((row) => before === undefined || row.job.id < before)
      .sort((a, b) => (a.job.id < b.job.id ? 1 : -1))
      .slice(0, limit)
  }

  /** The one that died last first. */
  dead(filter: { readonly type?: string; readonly limit: number }): readonly JobRow[] {
    const { type, limit } = filter
    return [...this.#dead]
      .reverse()
      .filter((row) => type === undefined || row.job.type === type)
      .slice(0, limit)
  }

  counts(nowMs: number): Counts {
    const counts: Record<string, TypeCounts> = {}
    for (const row of this.#rows.values()) {
      const what = doing(row, nowMs)
      if (what === null) continue
      const before = counts[row.job.type] ?? NO_JOBS
      counts[row.job.type] = { ...before, [what]: before[what] + 1 }
    }
    return counts
  }
}

/** Null for jobs that have ended without a result or an error of their own. */
function doing(row: JobRow, nowMs: number): keyof TypeCounts | null {
  if (row.ended !== null) return null
  if (row.state === 'completed') return 'completed'
  if (isDead(row)) return 'dead'
  if (row.state === 'in_progress') return 'inProgress'
  return row.dueMs > nowMs ? 'delayed' : 'ready'
}
