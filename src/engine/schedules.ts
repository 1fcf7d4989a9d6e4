/** The part of the port that schedules stand on. When a schedule runs, and what it enqueues, is the keeper's to decide. */
import type { NewJob } from '../job/job.ts'
import type { Receipt } from './engine.ts'

export interface ScheduleRecord {
  readonly name: string
  /** New with every change: the fence of whoever changes it. */
  readonly revision: string
  /** When it is due next; null while it is paused and after its last run. */
  readonly nextAtMs: number | null
  /** JSON text. Engines store it as it is and never look inside. */
  readonly body: string
}

export interface Schedules {
  /** By name. */
  list(): Promise<readonly ScheduleRecord[]>
  find(name: string): Promise<ScheduleRecord | null>
  /**
   * Stores the record and enqueues the jobs in one step if, and only if, the stored revision is `expected` (null: there
   * is no such schedule). Null when it is not: then nothing has changed. So of two keepers that fire one tick, one
   * succeeds, and one that was paused meanwhile does nothing.
   */
  save(record: ScheduleRecord, expected: string | null, jobs: readonly NewJob[]): Promise<readonly Receipt[] | null>
  /** False when there is none. Jobs that it has enqueued stay. */
  remove(name: string): Promise<boolean>
}
