/** A history as the rules need it: by job, by lease, by fault. */
import type { Capabilities } from '../../src/engine/capabilities.ts'
import type { DeskAction } from '../../src/engine/dead-letters.ts'
import type { Receipt } from '../../src/engine/engine.ts'
import type { SharedSlots } from '../../src/job/slots.ts'
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
import type { FinalStore } from './final-store.ts'
import type { Spans } from './spans.ts'

/** Whether something that was asked for was done. `unknown`: no answer was seen, or one that leaves it open. */
export type Done = 'yes' | 'no' | 'unknown'

/** A call with its answer; null when none was seen. */
export interface Asked<What extends Call['what'] = Call['what']> extends Stamp {
  readonly call: Extract<Call, { readonly what: What }>
  answer: (Stamp & Answer) | null
}

/** One time that a job was asked for. */
export interface Ask extends Stamp {
  readonly job: AskedJob
  /** The same for all jobs of a batch. */
  readonly batch: number
  readonly from: 'enqueue' | 'schedule' | 'foreign'
  readonly transaction: string | null
  readonly answeredMs: number | null
  /** `refused`: an answer said that nothing was stored. `rolled-back`: by the user's own transaction. */
  readonly status: Receipt['status'] | 'unknown' | 'refused' | 'rolled-back'
  /** Of the receipt: another job's where it is a duplicate. */
  readonly receiptId: string | null
}

export interface Settle {
  readonly outcome: AskedOutcome
  readonly askedMs: number
  readonly wallMs: number
  readonly answeredMs: number | null
  readonly done: Done
  /** Why it was not applied. */
  readonly reason: string | null
}

/** One lease of a job: its claim, what its handler did, and its outcomes. */
export interface Start {
  readonly lease: GivenLease
  readonly by: string
  readonly claim: Claim
  beginMs: number | null
  endMs: number | null
  lostMs: number | null
  /** When the signal of its handler was aborted, and the code of the reason. */
  aborted: { readonly atMs: number; readonly code: string } | null
  readonly settles: Settle[]
  readonly reports: { readonly askedMs: number; readonly answeredMs: number | null; readonly isHeld: boolean | null }[]
}

export interface Claim extends Stamp {
  readonly worker: string
  readonly max: number
  readonly waitMs: number
  readonly source: 'ready' | 'expired'
  readonly perType: Readonly<Record<string, number>>
  readonly paused: readonly string[]
  readonly subscription: Subscribed | null
  /** When its answer came. */
  givenMs: number | null
  /** Null while no answer was seen; also when it rejected. */
  starts: readonly Start[] | null
  /** It gave back what it had, and no entry says what and when; so does one that was rejected. */
  isGivenUp: boolean
}

export interface Subscribed {
  readonly types: ReadonlyMap<
    string,
    {
      readonly leaseMs: number
      readonly limit: { readonly max: number; readonly perMs: number } | null
      readonly slots: SharedSlots | null
    }
  >
  readonly ageingMs: number | null
}

/** A cancel, or an act at the desk. */
export interface Act {
  readonly kind: DeskAction | 'cancel'
  readonly by: string
  readonly who: string
  readonly reason: string
  readonly edit: string | null
  readonly askedMs: number
  readonly wallMs: number
  readonly answeredMs: number | null
  readonly done: Done
}

export interface JobStory {
  readonly id: string
  /** The time that stored it, or may have; null for a job that the history only saw claimed or refused. */
  ask: Ask | null
  /** Every time that it was asked for. */
  readonly asks: Ask[]
  /** In the order in which they were given. */
  readonly starts: Start[]
  readonly acts: Act[]
}

export interface ActiveFault extends Fault, Stamp {
  /** Infinity when it was never healed. */
  readonly healedMs: number
}

/** A save or removal of a record: a schedule or a pause. */
export interface RecordChange {
  readonly by: string
  readonly kind: string
  readonly name: string
  readonly revision: string | null
  readonly expected: string | null
  /** Null when it was removed. */
  readonly body: string | null
  readonly jobs: readonly AskedJob[]
  readonly askedMs: number
  readonly wallMs: number
  readonly answeredMs: number | null
  readonly done: Done
}

export interface ProcessStory {
  readonly name: string
  stoppingMs: number | null
  /** How long it has after SIGTERM. */
  boundMs: number | null
  exitedMs: number | null
  how: string | null
  /** By type, how many of its handlers may run at once; '' for all together. */
  concurrency: Readonly<Record<string, number>> | null
}

/** When faults were active, and what they allow. */
export interface Trouble {
  /** Any fault, and a while after it. */
  readonly any: Spans
  /** Of the store, a wire to it or the machine, and a while after it. */
  readonly store: Spans
  /** What was answered about jobs of a type within them may be undone. */
  undo(type: string): Spans
  /** Jobs of a type that were started before one of them ends may be started anew. */
  readAgain(type: string): Spans
  readonly wallClock: Spans
  /** Of this process or the store. */
  ofProcess(name: string): Spans
}

/** Something that was done under a lease that no claim gave, or once more under one that was used. */
export interface Stray {
  readonly id: string
  readonly by: string
  readonly what: 'began' | 'began-again' | 'settled'
}

export interface Evidence {
  readonly history: History
  readonly final: FinalStore
  readonly capabilities: Capabilities
  readonly jobs: ReadonlyMap<string, JobStory>
  readonly claims: readonly Claim[]
  readonly strays: readonly Stray[]
  readonly trouble: Trouble
  readonly processes: ReadonlyMap<string, ProcessStory>
  readonly records: readonly RecordChange[]
  readonly sweeps: readonly Asked<'sweep'>[]
  /** What clients and handlers saw beside their calls. */
  readonly seen: readonly Extract<Entry, { readonly what: 'seen' }>[]
  readonly calm: { readonly atMs: number; readonly boundMs: number } | null
  readonly finishedMs: number | null
  readonly endMs: number
  readonly tally: Tally
}

export interface Tally {
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
