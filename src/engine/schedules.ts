import type { NewJob } from '../job/job.ts'
import type { Receipt } from './engine.ts'
import { bodyFields, type Records, type StoredRecord } from './records.ts'

/** A schedule as it is stored. When it runs, and what it enqueues, is the keeper's to decide. */
export interface ScheduleRecord {
  readonly name: string
  /** New with every change: the fence against a keeper that has read an older one. */
  readonly revision: string
  /** When it is due next; null while it is paused and after its last run. */
  readonly nextAtMs: number | null
  /** JSON object, which also has `nextAtMs`. */
  readonly body: string
}

/** The stored schedules of an engine. */
export class Schedules {
  readonly #records: Records

  constructor(records: Records) {
    this.#records = records
  }

  /** By name. */
  async list(): Promise<readonly ScheduleRecord[]> {
    return (await this.#records.list('schedule')).map(toSchedule)
  }

  async find(name: string): Promise<ScheduleRecord | null> {
    return (await this.list()).find((schedule) => schedule.name === name) ?? null
  }

  /**
   * Stores the schedule and enqueues the jobs in one step if the stored revision is `expected` (null: there is no such
   * schedule). Null when it is not: of two keepers that fire one tick, one succeeds, and a keeper that was paused
   * meanwhile does nothing.
   */
  save(
    { name, revision, body }: Omit<ScheduleRecord, 'nextAtMs'>,
    expected: string | null,
    jobs: readonly NewJob[],
  ): Promise<readonly Receipt[] | null> {
    return this.#records.save('schedule', { name, revision, body }, expected, { jobs })
  }

  /** False if there is none. Jobs that it has enqueued stay. */
  async remove(name: string): Promise<boolean> {
    return (await this.#records.remove('schedule', [name])) > 0
  }
}

/** A body that cannot be read is due at once, so that a keeper reports it. */
export function toSchedule({ name, revision, body, savedAtMs }: StoredRecord): ScheduleRecord {
  const { nextAtMs = savedAtMs } = bodyFields(body)
  return { name, revision, nextAtMs: typeof nextAtMs === 'number' ? nextAtMs : null, body }
}
