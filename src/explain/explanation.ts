/** What is answered to the question why a job is not running, or what it does. */
import type { JobView } from '../job/job.ts'
import { stateOf } from '../job/states.ts'

/** One word for the main reason. The words are stable: scripts and pages look at them. */
export type Because =
  | 'completed'
  | 'dead'
  | 'cancelled'
  | 'superseded'
  | 'discarded'
  | 'running'
  | 'lease-expired'
  | 'waits-for-jobs'
  | 'unreadable'
  | 'delayed'
  | 'older-version-runs'
  | 'paused'
  | 'limit-reached'
  | 'no-worker'
  | 'slots-busy'
  | 'others-first'
  | 'due'
  | 'unsettled'
  | 'engine-down'

export interface ExplainedJob {
  readonly id: string
  readonly type: string
  /** `removed` for one that is no longer stored. */
  readonly state: string
}

export interface Explanation {
  readonly because: Because
  /** A sentence for a person. */
  readonly text: string
  /** Further sentences that hold too. */
  readonly also: readonly string[]
  /** When it may start, where that is known. */
  readonly untilMs: number | null
  /** Jobs that it waits for, or that hold what it needs; at most `EXPLAINED_JOBS_MAX`. */
  readonly jobs: readonly ExplainedJob[]
}

/** More would be a list to scroll, not an explanation. */
export const EXPLAINED_JOBS_MAX = 20

export function explainedJob(view: JobView): ExplainedJob {
  return { id: view.id, type: view.type, state: stateOf(view) }
}
