/**
 * A workload is data: a list of operations for each client, made from a seed. The same list runs against real servers and
 * in the simulation, and a failing one is made small by leaving operations or jobs out. What an operation refers to and
 * is no longer there is left out too, so every shorter list is a valid one.
 */
import type { Backoff } from '../../src/job/backoff.ts'
import type { Tenant } from '../../src/job/job.ts'

/** What a handler does at one start: the entry of its attempt, and the last one for all further attempts. */
export type Behaviour =
  | { readonly do: 'return'; readonly afterMs: number }
  /** `unstorable`: with a text that not every store can keep. */
  | { readonly do: 'throw'; readonly afterMs: number; readonly how: 'error' | 'non-retryable' | 'unstorable' }
  | { readonly do: 'retry-after'; readonly delayMs: number }
  /** Uses no attempt, so it is counted in each process: so many times, then it returns. */
  | { readonly do: 'offline' | 'postpone'; readonly delayMs: number; readonly times: number }
  /** Runs longer than its time-out. `heeds`: ends when its signal aborts. */
  | { readonly do: 'hang'; readonly forMs: number; readonly heeds: boolean }
  /** Blocks the event loop. */
  | { readonly do: 'block'; readonly forMs: number }
  | { readonly do: 'report'; readonly steps: number; readonly everyMs: number }
  /** Enqueues plain jobs of its own type before it returns; also while its worker closes. */
  | { readonly do: 'enqueue'; readonly count: number; readonly afterMs: number }
  /** Returns what JSON cannot keep, so the job is dead at once. */
  | { readonly do: 'return-nonsense' }
  /** Ends its own process. Only where a crash counts as a start. */
  | { readonly do: 'crash' }

export interface PlannedJob {
  /** Its number in the program, by which other operations refer to it. Its payload has it, so no two payloads are equal. */
  readonly n: number
  readonly type: string
  readonly behaviours: readonly Behaviour[]
  readonly priority?: number
  readonly delayMs?: number
  /** As an absolute time: this much after the moment of the enqueue. */
  readonly atMs?: number
  readonly attempts?: number
  readonly backoff?: Backoff
  readonly timeoutMs?: number
  readonly key?: string
  readonly latest?: { readonly key: string; readonly seq?: number }
  readonly tenant?: Tenant
  /** The version of the client that enqueues it. */
  readonly version?: 1 | 2
  readonly removeOnComplete?: boolean | number
  readonly removeOnFail?: boolean | number
  /** Numbers of earlier jobs of the same client, or of the same flow. */
  readonly after?: readonly number[]
  readonly ifDead?: 'wait' | 'run' | 'die'
  /** So many characters more in the payload. */
  readonly extra?: number
}

/** What an engine lacks and refuses; asked for on purpose. */
export type Unsupported =
  | 'delay'
  | 'long-delay'
  | 'long-backoff'
  | 'priority'
  | 'key'
  | 'latest'
  | 'after'
  | 'flow'
  | 'transaction'
  | 'removal'
  | 'limit'
  | 'slots'
  | 'schedule'
  | 'pause'
  | 'cancel'
  | 'result'

/** What every engine refuses. */
export type Mistake =
  | 'priority'
  | 'attempts'
  | 'delay-and-at'
  | 'key-and-latest'
  | 'unknown-option'
  | 'bad-payload'
  | 'payload-not-json'

export type Operation =
  /** `many`: in one call, with the options of the first. `repeat`: each twice under the same id, as after a lost answer. */
  | {
      readonly do: 'enqueue'
      readonly jobs: readonly PlannedJob[]
      readonly how: 'one-by-one' | 'many' | 'flow' | 'repeat'
    }
  | { readonly do: 'transaction'; readonly jobs: readonly PlannedJob[]; readonly end: 'commit' | 'roll-back' }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'cancel'; readonly job: number }
  | { readonly do: 'result'; readonly job: number; readonly waitMs: number }
  | { readonly do: 'pause' | 'resume'; readonly type: string }
  /** On the newest `count` letters that the desk lists; `undo` on jobs that are discarded. */
  | {
      readonly do: 'replay' | 'discard' | 'undo' | 'purge'
      readonly count: number
      readonly how: 'one-by-one' | 'at-once'
    }
  /** Replays the newest letter with another plan. */
  | { readonly do: 'edit'; readonly behaviours: readonly Behaviour[] }
  | {
      readonly do: 'schedule'
      readonly name: string
      readonly everySeconds: number
      readonly missed: 'skip' | 'one' | 'all'
    }
  | { readonly do: 'unschedule' | 'pause-schedule' | 'resume-schedule' | 'run-schedule'; readonly name: string }
  /** Removes finished jobs that are older, as an operator does it by hand. */
  | {
      readonly do: 'sweep'
      readonly what: 'completed' | 'ended' | 'dead'
      readonly type: string
      readonly ageMs: number
    }
  | { readonly do: 'unsupported'; readonly ask: Unsupported }
  | { readonly do: 'mistake'; readonly ask: Mistake }

export interface Program {
  readonly seed: number
  /** One list for each client. */
  readonly clients: readonly (readonly Operation[])[]
}
