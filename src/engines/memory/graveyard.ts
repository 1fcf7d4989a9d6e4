import type { AuditEntry, By } from '../../engine/dead-letters.ts'
import type { Dependencies } from './dependencies.ts'
import type { LatestKeys } from './latest.ts'
import { isDead, type JobRow, record } from './rows.ts'
import type { JobTable } from './table.ts'

/** What can be done to jobs that do not run again, and who did it. The store's own rules are about those that may. */
export class Graveyard {
  /** Every act at the dead-letter desk, oldest first. */
  readonly audit: AuditEntry[] = []
  readonly #table: JobTable
  readonly #latest: LatestKeys
  readonly #dependencies: Dependencies

  constructor(table: JobTable, latest: LatestKeys, dependencies: Dependencies) {
    this.#table = table
    this.#latest = latest
    this.#dependencies = dependencies
  }

  /** A dead letter again, with the time of death that it had. False unless it is discarded and still held. */
  undiscard(id: string, by: By, nowMs: number): boolean {
    const row = this.#table.get(id)
    if (row?.ended !== 'discarded') return false
    Object.assign(row, { ended: null, completedAtMs: this.#diedAtMs(id) ?? row.completedAtMs })
    this.#table.rebury(row)
    this.#dependencies.changed(row)
    record(row, 'dead', nowMs, { detail: { ...by, undone: 'discarded' } })
    return true
  }

  /** Forgets a dead letter or a discarded job. False unless it is one. */
  remove(id: string): boolean {
    const row = this.#table.get(id)
    if (row === null || !(isDead(row) || row.ended === 'discarded')) return false
    this.forget(row)
    return true
  }

  /** Jobs in the order of their arrival, whatever their state. */
  after(serial: number, max: number): readonly JobRow[] {
    return this.#table.after(serial, max)
  }

  finished(what: 'completed' | 'dead', type: string): readonly JobRow[] {
    return this.#table.finishedOf(what, type)
  }

  /** Forgets a job that is over and that nobody has to answer for. */
  forget(row: JobRow): void {
    this.#table.remove(row)
    this.#latest.remove(row)
    this.#dependencies.removed(row)
  }

  #diedAtMs(id: string): number | null {
    const discarded = this.audit.findLast((entry) => entry.jobId === id && entry.action === 'discard')
    const atMs = discarded?.before.completedAtMs
    return typeof atMs === 'number' ? atMs : null
  }
}
