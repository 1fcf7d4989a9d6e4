/** Why a job stands where it stands, as data: what the facts prove, and nothing that they only suggest. */
import type { Pause } from '../engine/pauses.ts'
import type { ErrorRecord, Predecessors } from '../job/job.ts'
import type { ExplainedJob } from './explanation.ts'

/** Why a job that is due later was put off. */
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
  | { readonly kind: 'superseded'; readonly atMs: number | null; readonly by: ExplainedJob | null }
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
      /** Null where the store forgets a lease with its end. */
      readonly atMs: number | null
      /** When a keeper has taken it over at the latest; null where that is not known. */
      readonly takenByMs: number | null
      readonly isLast: boolean
    }
  | {
      readonly kind: 'waits-for-jobs'
      /** Those that hold it back, of those that were looked up. */
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
  | {
      readonly kind: 'no-worker'
      readonly type: string
      readonly stopping: readonly string[]
      /** Those that went without a goodbye, and when they were last heard. */
      readonly missing: readonly { readonly worker: string; readonly seenAtMs: number }[]
    }
  | { readonly kind: 'slots-busy'; readonly workers: readonly string[]; readonly jobs: readonly ExplainedJob[] }
  | { readonly kind: 'others-first'; readonly count: number; readonly isLeast: boolean }
  | { readonly kind: 'due'; readonly type: string; readonly sinceMs: number; readonly workers: number | null }
  /** The state is none that a job stays in. */
  | { readonly kind: 'unsettled' }
  | { readonly kind: 'engine-down'; readonly engine: string; readonly error: string }

/** What is good to know besides, and no reason by itself. */
export type Note =
  | { readonly kind: 'will-die'; readonly error: string }
  | { readonly kind: 'paused-goes-on'; readonly pause: Pause }
  | { readonly kind: 'holder-silent'; readonly worker: string; readonly seenAtMs: number }
  | { readonly kind: 'holder-stopping'; readonly worker: string; readonly sinceMs: number }
  | { readonly kind: 'quiet-workers'; readonly workers: readonly string[]; readonly forMs: number }
  | { readonly kind: 'maybe-limited'; readonly starts: number; readonly perMs: number }

export interface Decision {
  /** The first is the main one; never empty. */
  readonly reasons: readonly [Reason, ...Reason[]]
  readonly notes: readonly Note[]
}
