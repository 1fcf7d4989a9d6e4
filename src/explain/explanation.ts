import type { LimitOverride } from '../engine/limits.ts'
import type { Pause } from '../engine/pauses.ts'
import type { ErrorRecord, JobView, Predecessors } from '../job/job.ts'

/** Why a job is not running, or what it is doing: the public result, and the reasons it is made from. */

/** The main reason. The words are stable: scripts and pages rely on them. */
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
  | 'slots-taken'
  | 'no-worker'
  | 'slots-busy'
  | 'others-first'
  | 'due'
  | 'unsettled'
  | 'engine-down'

export interface ExplainedJob {
  readonly id: string
  readonly type: string
  /** `removed` for a job that is no longer stored. */
  readonly state: string
}

export interface Explanation {
  readonly because: Because
  /** One sentence. */
  readonly text: string
  /** Further sentences. */
  readonly also: readonly string[]
  /** When it may start, if known. */
  readonly untilMs: number | null
  /** Jobs that it waits for, or that occupy its limit; at most `EXPLAINED_JOBS_MAX`. */
  readonly jobs: readonly ExplainedJob[]
}

export const EXPLAINED_JOBS_MAX = 20

export function explainedJob(view: JobView): ExplainedJob {
  return { id: view.id, type: view.type, state: view.state }
}

/** Why a job is due later. */
export type PutOff =
  | { readonly by: 'enqueue' }
  | { readonly by: 'retry'; readonly attempt: number; readonly attempts: number; readonly error: ErrorRecord | null }
  | { readonly by: 'release'; readonly reason: string }

export type Reason =
  | {
      readonly kind: 'completed'
      readonly atMs: number | null
      readonly worker: string | null
      readonly tookMs: number | null
    }
  | {
      readonly kind: 'dead'
      readonly atMs: number | null
      readonly attempt: number
      readonly attempts: number
      readonly error: ErrorRecord | null
    }
  | {
      readonly kind: 'cancelled' | 'discarded'
      readonly atMs: number | null
      readonly who: string | null
      readonly reason: string | null
    }
  | {
      readonly kind: 'superseded'
      readonly atMs: number | null
      readonly by: ExplainedJob | null
      /** A record of a log, whose dead letter was replayed. */
      readonly isReplay?: boolean
    }
  | {
      readonly kind: 'running'
      readonly worker: string | null
      readonly sinceMs: number | null
      readonly attempt: number
      readonly attempts: number
      readonly leaseUntilMs: number | null
    }
  | {
      readonly kind: 'lease-expired'
      readonly worker: string | null
      /** Null when the store forgets expired leases. */
      readonly atMs: number | null
      /** When a keeper recovers it at the latest; null if unknown. */
      readonly takenByMs: number | null
      readonly isLast: boolean
    }
  | {
      readonly kind: 'waits-for-jobs'
      /** Those that hold it back, among the ones looked up. */
      readonly jobs: readonly ExplainedJob[]
      readonly of: number
      readonly notLookedUp: number
      readonly ifDead: Predecessors['ifDead']
    }
  /** Another program wrote a value that no claim finds. */
  | { readonly kind: 'unreadable'; readonly field: 'due time' | 'priority'; readonly value: number }
  | { readonly kind: 'delayed'; readonly untilMs: number; readonly putOff: PutOff }
  | { readonly kind: 'older-version-runs'; readonly latestKey: string; readonly job: ExplainedJob }
  | { readonly kind: 'paused'; readonly pause: Pause }
  | {
      readonly kind: 'limit-reached'
      readonly max: number
      readonly perMs: number
      readonly untilMs: number
      readonly jobs: readonly ExplainedJob[]
    }
  /** Over all workers. `tenant`: null where they are those of the whole type; empty for jobs without a tenant. */
  | {
      readonly kind: 'slots-taken'
      readonly max: number
      readonly tenant: string | null
      readonly jobs: readonly ExplainedJob[]
    }
  | {
      readonly kind: 'no-worker'
      readonly type: string
      readonly stopping: readonly string[]
      /** Workers that did not sign off, and when they were last seen. */
      readonly missing: readonly { readonly worker: string; readonly seenAtMs: number }[]
    }
  | { readonly kind: 'slots-busy'; readonly workers: readonly string[]; readonly jobs: readonly ExplainedJob[] }
  | { readonly kind: 'others-first'; readonly count: number; readonly isLeast: boolean }
  | { readonly kind: 'due'; readonly type: string; readonly sinceMs: number; readonly workers: number | null }
  /** A state that no job stays in. */
  | { readonly kind: 'unsettled' }
  | { readonly kind: 'engine-down'; readonly engine: string; readonly error: string }

/** Worth knowing, but not a reason by itself. */
export type Note =
  | { readonly kind: 'will-die'; readonly error: string }
  | { readonly kind: 'paused-goes-on'; readonly pause: Pause }
  | { readonly kind: 'holder-silent'; readonly worker: string; readonly seenAtMs: number }
  | { readonly kind: 'holder-stopping'; readonly worker: string; readonly sinceMs: number }
  /** What its priority counts as for its workers. */
  | { readonly kind: 'aged'; readonly waitedMs: number; readonly priority: number; readonly rank: number }
  | { readonly kind: 'quiet-workers'; readonly workers: readonly string[]; readonly forMs: number }
  /** An operator's limits hold it back, not the definition's. */
  | { readonly kind: 'limits-changed'; readonly override: LimitOverride }
  /** More jobs run than were looked at. */
  | { readonly kind: 'maybe-slots-taken'; readonly max: number; readonly by: 'tenant' | null }
  | { readonly kind: 'maybe-limited'; readonly starts: number; readonly perMs: number }

export interface Decision {
  /** The main reason first. */
  readonly reasons: readonly [Reason, ...Reason[]]
  readonly notes: readonly Note[]
}
