import type { Engine } from '../engine/engine.ts'
import type { Events } from '../events.ts'
import type { AnyJob } from '../job/definition.ts'
import type { Redactor } from '../job/error-record.ts'
import type { NewJob } from '../job/job.ts'
import type { EnqueueOptions } from '../job/options.ts'
import type { Clock } from '../time/clock.ts'

/** When a new leader tidies up and counts for the first time: a process that has just started has more urgent things to do. */
export const FIRST_PASS_MS = 15_000

/** The client's own preparation of a job: a scheduled job is checked and completed like any other. */
export type Prepare = (definition: AnyJob, payload: unknown, options: EnqueueOptions) => Promise<NewJob>

/** What schedules stand on. */
export interface ScheduleParts {
  readonly engine: Engine
  readonly events: Events
  readonly clock: Clock
  /** By type. Jobs of other types are enqueued by what was stored with their schedule. */
  readonly definitions: ReadonlyMap<string, AnyJob>
  readonly prepare: Prepare
}

/** What a keeper stands on. */
export interface KeeperParts extends Omit<ScheduleParts, 'prepare'> {
  readonly random: () => number
  readonly redactor: Redactor
  /** Without it there are no schedules. */
  readonly prepare: Prepare | null
}
