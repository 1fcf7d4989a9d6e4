import type { Receipt } from '../../engine/engine.ts'
import { UnknownJobError } from '../../errors.ts'
import type { NewJob, Predecessors } from '../../job/job.ts'
import { redirect } from '../../job/predecessors.ts'
import type { Backlog } from './backlog.ts'
import { isDead, isFinished, type JobRow } from './rows.ts'
import type { JobTable } from './table.ts'
import type { Wakeups } from './wakeups.ts'

interface Parts {
  readonly table: JobTable
  readonly backlog: Backlog
  readonly wakeups: Wakeups
}

/** Which jobs come after which. A dead letter still counts: it may be replayed. */
export class Dependencies {
  readonly #parts: Parts
  /** By the id of a predecessor: its successors, and whether it holds them back. */
  readonly #successors = new Map<string, Map<JobRow, boolean>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Throws before anything of the batch is stored. `isStale`: such a job would not be stored. */
  check(jobs: readonly NewJob[], isStale: (job: NewJob) => boolean): void {
    if (jobs.every(({ after }) => after === null)) return
    const { table } = this.#parts
    const before = new Set<string>()
    for (const job of jobs) {
      const isDuplicate = before.has(job.id) || table.get(job.id) !== null || table.liveOf(job.key) !== null
      const unknown = job.after?.ids.find((id) => !before.has(id) && table.get(id) === null)
      if (!isDuplicate && unknown !== undefined) throw new UnknownJobError(unknown)
      if (isDuplicate || !isStale(job)) before.add(job.id)
    }
  }

  /** Links a new row to its predecessors. */
  link(row: JobRow): void {
    const { after } = row.job
    if (after === null) return
    for (const id of after.ids) {
      const first = this.#parts.table.get(id)
      const isHeld = holdsBack(first, after)
      const successors = this.#successors.get(id) ?? new Map<JobRow, boolean>()
      this.#successors.set(id, successors.set(row, isHeld))
      if (isHeld) row.waitingFor += 1
      if (first !== null) first.neededBy += 1
    }
  }

  /** Its state changed, or it is gone: its successors continue, or wait for it again. */
  changed(first: JobRow): void {
    const { id } = first.job
    const successors = this.#successors.get(id)
    if (successors === undefined) return
    const present = this.#parts.table.get(id)
    for (const [row, wasHeld] of successors) {
      const isHeld = row.job.after !== null && holdsBack(present, row.job.after)
      if (isHeld === wasHeld) continue
      successors.set(row, isHeld)
      row.waitingFor += isHeld ? 1 : -1
      this.#move(row)
    }
  }

  #move(row: JobRow): void {
    if (row.state !== 'queued') return
    const { backlog, wakeups } = this.#parts
    backlog.remove(row)
    if (row.waitingFor > 0) return
    backlog.add(row)
    wakeups.markQueued()
  }

  /** A row finished: updates its successors, and it no longer needs its predecessors. */
  finished(row: JobRow): void {
    this.changed(row)
    // Dead letters and discarded jobs can come back.
    if (row.state === 'completed' || row.ended === 'cancelled' || row.ended === 'superseded') this.#unlink(row)
  }

  /** The row was removed from the table. */
  removed(row: JobRow): void {
    this.changed(row)
    this.#unlink(row)
  }

  #unlink(row: JobRow): void {
    for (const id of row.job.after?.ids ?? []) {
      const successors = this.#successors.get(id)
      if (successors?.delete(row) !== true) continue
      if (successors.size === 0) this.#successors.delete(id)
      const first = this.#parts.table.get(id)
      if (first !== null) first.neededBy -= 1
    }
  }
}

/** Stores the jobs in turn. Successors of a duplicate wait for the job that it duplicates. */
export function eachRedirected(jobs: readonly NewJob[], store: (job: NewJob) => Receipt): readonly Receipt[] {
  const duplicates = new Map<string, string>()
  return jobs.map((job) => {
    const receipt = store(job.after === null ? job : { ...job, after: redirect(job.after, duplicates) })
    if (receipt.status === 'duplicate') duplicates.set(job.id, receipt.id)
    return receipt
  })
}

function holdsBack(first: JobRow | null, { ifDead }: Predecessors): boolean {
  if (first === null) return false
  return !isFinished(first) || (isDead(first) && ifDead === 'wait')
}
