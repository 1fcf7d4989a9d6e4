/** A history in the shape in which rules ask: by job, by lease, by fault. */
import type { Capabilities } from '../../src/engine/capabilities.ts'
import type {
  Answer,
  AskedJob,
  AskedOutcome,
  Call,
  Entry,
  Fault,
  GivenLease,
  History,
  Stamp,
} from '../history/entry.ts'
import type { Facts } from './check.ts'
import type { FinalStore } from './final-store.ts'

/** A call with its answer; null when none was seen. */
export interface Asked<What extends Call['what'] = Call['what']> extends Stamp {
  readonly call: Extract<Call, { readonly what: What }>
  readonly answer: (Stamp & Answer) | null
}

/** One start of a job: what its claim gave, what its handler did and what was said about its end. */
export interface Start {
  readonly lease: GivenLease
  readonly by: string
  readonly worker: string
  readonly from: 'ready' | 'expired'
  /** When it was asked for, and when it was given. */
  readonly askedMs: number
  readonly givenMs: number
  beginMs: number | null
  endMs: number | null
  lostMs: number | null
  readonly settles: {
    readonly outcome: AskedOutcome
    readonly askedMs: number
    /** Null: no answer was seen, so it may have been applied or not. */
    readonly answeredMs: number | null
    readonly verdict: 'applied' | 'refused' | 'unknown'
  }[]
}

export interface JobStory {
  readonly id: string
  /** Null for a job that the history only saw claimed. */
  readonly asked: AskedJob | null
  readonly askedMs: number
  /** When its receipt came; null when none did. */
  readonly acknowledgedMs: number | null
  readonly status: 'enqueued' | 'duplicate' | 'replaced' | 'stale' | 'unknown' | 'rolled-back'
  /** In the order in which they were given. */
  readonly starts: readonly Start[]
}

export interface ActiveFault extends Fault, Stamp {
  /** Infinity when it was never healed. */
  readonly healedMs: number
}

export interface Evidence {
  readonly history: History
  readonly final: FinalStore
  readonly capabilities: Capabilities
  readonly jobs: ReadonlyMap<string, JobStory>
  readonly faults: readonly ActiveFault[]
  readonly calls: readonly Asked[]
  readonly tally: {
    readonly jobs: number
    readonly starts: number
    readonly completed: number
    readonly dead: number
    /** Starts beyond the first of a job. */
    readonly repeats: number
    readonly refusedSettles: number
    readonly unknownCalls: number
    /** By nemesis. */
    readonly faults: Readonly<Record<string, number>>
  }
}

export function gather(_facts: Facts): Evidence {
  throw new Error('not written yet')
}
export type { Entry }
