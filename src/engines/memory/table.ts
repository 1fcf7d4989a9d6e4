import { NO_JOBS } from '../../engine/counts.ts'
import type { DeadLetterFilter } from '../../engine/dead-letters.ts'
import type { Counts, JobFilter, TypeCounts } from '../../engine/engine.ts'
import { shownState } from '../../job/states.ts'
import { isDead, type JobRow } from './rows.ts'

/** Every job of the store; the oldest finished ones make room for new ones. */
export class JobTable {
  readonly #rows = new Map<string, JobRow>()
  /** The live job of each idempotency key. */
  readonly #liveByKey = new Map<string, JobRow>()
  /** Completed, cancelled and superseded jobs in order of finishing; the oldest leave first. */
  #finished: JobRow[] = []
  /** Those before it are gone. A Set would walk its deleted entries to find the oldest. */
  #finishedFrom = 0
  /** In order of death. They stay until an operator or retention acts: a dead letter is never dropped by itself (I9). */
  readonly #dead = new Set<JobRow>()
  /** The completed jobs of each type. */
  readonly #completed = new Map<string, Set<JobRow>>()
  /** Jobs of each type that are queued or in progress. */
  readonly #live = new Map<string, number>()
  readonly #finishedMax: number

  constructor(finishedMax: number) {
    this.#finishedMax = finishedMax
  }

  get(id: string): JobRow | null {
    return this.#rows.get(id) ?? null
  }

  live(type: string): number {
    return this.#live.get(type) ?? 0
  }

  liveOf(key: string | null): JobRow | null {
    return key === null ? null : (this.#liveByKey.get(key) ?? null)
  }

  add(row: JobRow): void {
    this.#rows.set(row.job.id, row)
    this.#enliven(row)
  }

  /** Files a row by its final state and frees its idempotency key. Returns the rows that made room. */
  finish(row: JobRow): readonly JobRow[] {
    const { key } = row.job
    if (key !== null && this.#liveByKey.get(key) === row) this.#liveByKey.delete(key)
    this.#countLive(row, -1)
    if (isDead(row)) {
      this.#dead.add(row)
      return []
    }
    this.#finished.push(row)
    if (row.state === 'completed') this.#completedOf(row.job.type).add(row)
    return this.#trim()
  }

  /** In order of arrival, after a serial. */
  after(serial: number, max: number): readonly JobRow[] {
    const rows: JobRow[] = []
    for (const row of this.#rows.values()) {
      if (rows.length === max) break
      if (row.serial > serial) rows.push(row)
    }
    return rows
  }

  /** The completed jobs or the dead letters of a type, the newest first. */
  finishedOf(what: 'completed' | 'dead', type: string): readonly JobRow[] {
    const rows =
      what === 'completed'
        ? [...(this.#completed.get(type) ?? [])]
        : [...this.#dead].filter((row) => row.job.type === type)
    return rows.sort((a, b) => b.arrival - a.arrival)
  }

  #completedOf(type: string): Set<JobRow> {
    const known = this.#completed.get(type) ?? new Set()
    this.#completed.set(type, known)
    return known
  }

  #forgetCompleted(row: JobRow): void {
    const rows = this.#completed.get(row.job.type)
    if (rows?.delete(row) === true && rows.size === 0) this.#completed.delete(row.job.type)
  }

  #trim(): readonly JobRow[] {
    const from = this.#finishedFrom
    this.#finishedFrom = Math.max(from, this.#finished.length - this.#finishedMax)
    const oldest = this.#finished.slice(from, this.#finishedFrom)
    const gone = oldest.filter(({ neededBy }) => neededBy === 0)
    // A result that a successor will read stays for another round.
    this.#finished.push(...oldest.filter(({ neededBy }) => neededBy > 0))
    for (const row of gone) {
      this.#rows.delete(row.job.id)
      this.#forgetCompleted(row)
    }
    if (this.#finishedFrom > this.#finished.length / 2) {
      this.#finished = this.#finished.slice(this.#finishedFrom)
      this.#finishedFrom = 0
    }
    return gone
  }

  /** A dead letter is live again. It gets its key back unless another live job has it. */
  unfinish(row: JobRow): void {
    this.#dead.delete(row)
    this.#enliven(row)
  }

  /** A discarded job is a dead letter again. */
  restore(row: JobRow): void {
    this.#unfile(row)
    this.#dead.add(row)
  }

  /** Removes a finished job. */
  remove(row: JobRow): void {
    this.#dead.delete(row)
    this.#unfile(row)
    this.#forgetCompleted(row)
    this.#rows.delete(row.job.id)
  }

  /** The row is usually the newest or the oldest. */
  #unfile(row: JobRow): void {
    const isOldest = this.#finished[this.#finishedFrom] === row
    const index = isOldest ? this.#finishedFrom : this.#finished.lastIndexOf(row)
    if (index >= this.#finishedFrom) this.#finished.splice(index, 1)
  }

  #enliven(row: JobRow): void {
    const { key } = row.job
    if (key !== null && !this.#liveByKey.has(key)) this.#liveByKey.set(key, row)
    this.#countLive(row, 1)
  }

  #countLive({ job }: JobRow, change: 1 | -1): void {
    const live = this.live(job.type) + change
    if (live === 0) this.#live.delete(job.type)
    else this.#live.set(job.type, live)
  }

  /** Newest first, by id. */
  list(filter: JobFilter): readonly JobRow[] {
    const { state, type, before, limit } = filter
    return [...this.#rows.values()]
      .filter((row) => state === undefined || shownState(row.state, row.ended) === state)
      .filter((row) => type === undefined || row.job.type === type)
      .filter((row) => before === undefined || row.job.id < before)
      .sort((a, b) => (a.job.id < b.job.id ? 1 : -1))
      .slice(0, limit)
  }

  /** Last died first. */
  dead(filter: DeadLetterFilter): readonly JobRow[] {
    const { type, sinceMs = 0, beforeMs = Number.POSITIVE_INFINITY, limit, after } = filter
    return [...this.#dead]
      .filter((row) => type === undefined || row.job.type === type)
      .filter((row) => diedAtMs(row) >= sinceMs && diedAtMs(row) < beforeMs)
      .filter((row) => after === undefined || isOlder(row, after))
      .sort((a, b) => (isOlder(a, { completedAtMs: diedAtMs(b), id: b.job.id }) ? 1 : -1))
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

function diedAtMs(row: JobRow): number {
  return row.completedAtMs ?? 0
}

function isOlder(row: JobRow, than: { readonly completedAtMs: number; readonly id: string }): boolean {
  const atMs = diedAtMs(row)
  return atMs === than.completedAtMs ? row.job.id < than.id : atMs < than.completedAtMs
}

/** Null for cancelled, superseded and discarded jobs, which are not counted. */
function doing(row: JobRow, nowMs: number): keyof TypeCounts | null {
  if (row.ended !== null) return null
  if (row.state === 'completed') return 'completed'
  if (isDead(row)) return 'dead'
  if (row.state === 'in_progress') return 'inProgress'
  return row.dueMs > nowMs || row.waitingFor > 0 ? 'delayed' : 'ready'
}
