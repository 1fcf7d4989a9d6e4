import type { AuditEntry, By } from '../../engine/dead-letters.ts'
import type { LatestKeys } from './latest.ts'
import { isDead, record } from './rows.ts'
import type { JobTable } from './table.ts'

/** What can be done to jobs that do not run again, and who did it. The store's own rules are about those that may. */
export class Graveyard {
  /** Every act at the dead-letter desk, oldest first. */
  readonly audit: AuditEntry[] = []
  readonly #table: JobTable
  readonly #latest: LatestKeys

  constructor(table: JobTable, latest: LatestKeys) {
    this.#table = table
    this.#latest = latest
  }

  /** A dead letter again, with the time of death that it had. False unless it is discarded and still held. */
  undiscard(id: string, by: By, nowMs: number): boolean {
    const row = this.#table.get(id)
    if (row?.ended !== 'discarded') return false
    Object.assign(row, { ended: null, completedAtMs: this.#diedAtMs(id) ?? row.completedAtMs })
    this.#table.rebury(row)
    record(row, 'dead', nowMs, { detail: { ...by, undone: 'discarded' } })
    return true
  }

  /** Forgets a dead letter or a discarded job. False unless it is one. */
  remove(id: string): boolean {
    const row = this.#table.get(id)
    if (row === null || !(isDead(row) || row.ended === 'discarded')) return false
    this.#table.remove(row)
    this.#latest.remove(row)
    return true
  }

  #diedAtMs(id: string): number | null {
    const discarded = this.audit.findLast((entry) => entry.jobId === id && entry.action === 'discard')
    const atMs = discarded?.before.completedAtMs
    return typeof atMs === 'number' ? atMs : null
  }
}
