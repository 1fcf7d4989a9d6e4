/**
 * What a history is made of: one entry for each call of the port and one for its answer, for each start and end of a
 * handler, and for each fault. An entry is one line of JSON, written before the call and after the answer, so that the
 * history of a process that was killed ends in the middle of what it did.
 */
import type { DeskAction } from '../../src/engine/dead-letters.ts'
import type { Receipt } from '../../src/engine/engine.ts'
import type { LostReason, Outcome } from '../../src/engine/outcome.ts'
import type { RecordKind } from '../../src/engine/records.ts'
import type { RetentionRule } from '../../src/engine/retention.ts'
import type { NewJob } from '../../src/job/job.ts'
import type { SharedSlots } from '../../src/job/slots.ts'

/** A job as it was asked for. Fields at their default (null, delay 0) are left out. */
export interface AskedJob {
  readonly id: string
  readonly type: string
  readonly priority: number
  readonly attempts: number
  /** Of the payload as text: histories hold no payloads. */
  readonly digest: string
  readonly payloadVersion: number
  readonly delayMs?: number
  readonly runAtMs?: number
  readonly key?: string
  readonly latest?: NonNullable<NewJob['latest']>
  readonly after?: NonNullable<NewJob['after']>
  /** `orgId`, or `orgId/workspaceId`. */
  readonly tenant?: string
  readonly keepCompleted?: number | null
  readonly keepDead?: number | null
}

/** A lease as a claim gave it. */
export interface GivenLease {
  readonly id: string
  readonly type: string
  readonly attempt: number
  readonly token: string
  readonly digest: string
  readonly priority: number
  readonly runAtMs: number
  /** When it runs out by the clock that counts; left out where the engine watches liveness itself. */
  readonly untilMs?: number
  readonly key?: string
  readonly latestKey?: string
  readonly tenant?: string
  /** Where `tenant` also has a workspace. */
  readonly orgId?: string
  /** It is settled as dead without being run: `verdict` and `failure` of a lease. */
  readonly isJudged?: true
}

/** An outcome as a worker asked for it. */
export interface AskedOutcome {
  readonly id: string
  readonly token: string
  readonly kind: Outcome['kind']
  readonly delayMs?: number
  /** Of the result as text, for a completion. */
  readonly digest?: string
  readonly code?: string | null
  readonly keep?: number
  readonly keepIsOwn?: boolean
}

/** When an entry was written, and by which process. */
export interface Stamp {
  /** On the machine's monotonic clock, which all processes share. In a simulation: on the test clock. */
  readonly atMs: number
  /** The wall clock of the process that wrote it, which a fault may have set. */
  readonly wallMs: number
  /** The process, or the part of a simulation: unique in a history. A process that is started again has a new name. */
  readonly by: string
}

/** A call that was made: its answer has the same `by` and `call`. One without an answer may have had any effect, or none. */
export type Call =
  | { readonly what: 'enqueue'; readonly jobs: readonly AskedJob[]; readonly transaction?: string }
  | {
      readonly what: 'consume'
      readonly worker: string
      readonly types:
        | 'every'
        | readonly {
            readonly type: string
            readonly leaseMs: number
            readonly limit?: { readonly max: number; readonly perMs: number }
            readonly slots?: SharedSlots
          }[]
      readonly ageingMs?: number
    }
  | {
      readonly what: 'claim'
      readonly worker: string
      readonly max: number
      readonly waitMs: number
      readonly from: 'ready' | 'expired'
      readonly perType?: Readonly<Record<string, number>>
      /** Types of the subscription that were paused when it was asked. */
      readonly paused?: readonly string[]
    }
  | { readonly what: 'settle'; readonly worker: string; readonly outcomes: readonly AskedOutcome[] }
  | { readonly what: 'report'; readonly worker: string; readonly id: string; readonly token: string }
  | { readonly what: 'leave'; readonly worker: string }
  | { readonly what: 'cancel'; readonly id: string }
  | {
      readonly what: 'desk'
      readonly act: DeskAction
      readonly ids: readonly string[]
      readonly who: string
      readonly reason: string
      /** The digest of the payload that takes the place of the stored one. */
      readonly edit?: string
    }
  | {
      readonly what: 'save'
      readonly kind: RecordKind
      readonly name: string
      readonly revision: string
      readonly expected: string | null
      readonly body: string
      readonly jobs: readonly AskedJob[]
    }
  | { readonly what: 'remove'; readonly kind: RecordKind; readonly names: readonly string[] }
  | { readonly what: 'sweep'; readonly rules: readonly RetentionRule[]; readonly isDryRun: boolean }
  | { readonly what: 'close' }

/** How a call was answered. */
export type Answer =
  | { readonly what: 'enqueued'; readonly receipts: readonly Receipt[] }
  | { readonly what: 'consuming' }
  /** `isGivenUp`: its signal had been aborted before it was answered, so it gave back what it had. */
  | { readonly what: 'claimed'; readonly leases: readonly GivenLease[]; readonly isGivenUp?: true }
  | {
      readonly what: 'settled'
      /** An engine may give all leases of one claim the same token: with the id it names one lease. */
      readonly refused: readonly { readonly id: string; readonly token: string; readonly reason: string }[]
    }
  | { readonly what: 'reported'; readonly isHeld: boolean }
  | { readonly what: 'left' }
  | { readonly what: 'cancelled'; readonly isDone: boolean }
  | { readonly what: 'desk-done'; readonly done: readonly boolean[] }
  /** Null: the stored revision was another one, and nothing has changed. */
  | { readonly what: 'saved'; readonly receipts: readonly Receipt[] | null }
  | { readonly what: 'removed'; readonly count: number }
  | { readonly what: 'swept'; readonly removed: number }
  | { readonly what: 'closed' }
  /** It rejected. `isRefusal`: the error says that nothing was done (a bad option, an unsupported feature, a closed engine). */
  | { readonly what: 'failed'; readonly code: string; readonly message: string; readonly isRefusal: boolean }

/** What happened outside the calls. */
export type Happening =
  /** A lease was lost, according to `renew` or to the engine itself. */
  | {
      readonly what: 'lost'
      readonly worker: string
      readonly id: string
      readonly token: string
      readonly reason: LostReason
    }
  | { readonly what: 'begin'; readonly id: string; readonly attempt: number; readonly token: string }
  /** The signal of a handler that ran, with the code of its reason. */
  | {
      readonly what: 'aborted'
      readonly id: string
      readonly attempt: number
      readonly token: string
      readonly code: string
    }
  | {
      readonly what: 'end'
      readonly id: string
      readonly attempt: number
      readonly token: string
      readonly how: 'returned' | 'threw'
    }
  /**
   * What a client or a handler saw beside its calls, such as a refusal in the client, a result or its own context, and
   * whether it is what `rule` promises. False is a violation.
   */
  | {
      readonly what: 'seen'
      readonly rule: string
      readonly job: string | null
      readonly isPromised: boolean
      readonly sentence: string
    }
  /** A transaction of the user's own: `committing` is written before it is asked for. */
  | {
      readonly what: 'transaction'
      readonly transaction: string
      readonly end: 'committing' | 'committed' | 'rolled-back'
    }
  /**
   * A job of another program, written before it is asked for and, with `isStored`, once the program has said that it is
   * stored. Where the id cannot be known it is empty: then the job is known by its type and its payload, so each payload
   * is given once.
   */
  | { readonly what: 'foreign'; readonly job: AskedJob; readonly program: string; readonly isStored?: true }
  | {
      readonly what: 'process'
      readonly event: 'started' | 'stopping' | 'exited'
      readonly name: string
      /** Of `exited`: its exit code or the signal that ended it. */
      readonly how?: string
      /** Of `stopping`: it was sent SIGTERM and has so long to exit by itself: its drain time and what the exit takes. */
      readonly boundMs?: number
      /** Of `started`: by type, how many of its handlers may run at once; under '' all together. */
      readonly concurrency?: Readonly<Record<string, number>>
    }
  | Fault
  | { readonly what: 'healed'; readonly fault: number }
  /** From here on no fault is active, and within `boundMs` every job has to finish. */
  | { readonly what: 'calm'; readonly boundMs: number }
  | { readonly what: 'finished' }

export interface Fault {
  readonly what: 'fault'
  readonly fault: number
  /** Its kind: `kill`, `pause`, `clock`, `server-crash`. */
  readonly nemesis: string
  /** The process that was struck, or null for the store, a wire to it or the whole machine. */
  readonly target: string | null
  readonly detail?: string
  /** What the contract of the engine allows to happen because of it; anything else is a violation. */
  readonly allows?: readonly Allowance[]
  /** The types whose jobs are lost or read again; all when it is left out. */
  readonly types?: readonly string[]
  /** Processes were only asked for what the contract promises in full, such as to stop: it excuses nothing. */
  readonly isRequest?: true
  /** With `lose-recent`: what was answered so long before it may be undone. */
  readonly recentMs?: number
  /** With `lose-all`: what is asked so long after it began is kept or refused; without it, what is asked once it is healed. */
  readonly undoesForMs?: number
}

/**
 * `lose-all`: the store was emptied. `lose-recent`: what was acknowledged in the last `recentMs` may be undone, because the
 * server was replaced by an asynchronous copy. `wall-clock`: due times and limits counted on the wall clock are not judged
 * until it is healed. `read-again`: jobs are read again from the beginning, and their starts are counted anew.
 */
export type Allowance = 'lose-all' | 'lose-recent' | 'read-again' | 'wall-clock'

export type Entry = Stamp & ((Call & { readonly call: number }) | (Answer & { readonly call: number }) | Happening)

/** The entries of all processes in the order of their times. */
export type History = readonly Entry[]
