/**
 * A workload is data: a list of operations for each client, made from a seed. The same list runs against real servers and
 * in the simulation, and a failing one is made small by leaving operations out.
 */
import type { Backoff } from '../../src/job/backoff.ts'

/** What a handler does at one start; the last entry of a plan counts for all further starts. */
export type Behaviour =
  | { readonly do: 'return'; readonly afterMs: number }
  | {
      readonly do: 'throw'
      readonly afterMs: number
      readonly how: 'error' | 'non-retryable' | 'retry-after' | 'offline' | 'postpone'
    }
  /** Runs longer than its time-out; `heeds`: ends when its signal aborts. */
  | { readonly do: 'hang'; readonly forMs: number; readonly heeds: boolean }
  /** Blocks the event loop. */
  | { readonly do: 'block'; readonly forMs: number }
  | { readonly do: 'report'; readonly steps: number; readonly everyMs: number }
  /** Enqueues further jobs of plain behaviour before it returns. */
  | { readonly do: 'enqueue'; readonly count: number }
  /** Ends its own process; only where processes may be killed. */
  | { readonly do: 'crash' }

export interface PlannedJob {
  readonly type: string
  readonly behaviours: readonly Behaviour[]
  readonly priority?: number
  readonly delayMs?: number
  readonly attempts?: number
  readonly backoff?: Backoff
  readonly timeoutMs?: number
  readonly key?: string
  readonly latest?: { readonly key: string; readonly seq?: number }
  readonly tenant?: string
  readonly payloadVersion?: number
  readonly removeOnComplete?: boolean | number
  readonly removeOnFail?: boolean | number
  /** Earlier jobs of the same client, counted back from the newest: 0 is the last one. */
  readonly after?: readonly number[]
  readonly ifDead?: 'wait' | 'run' | 'die'
}

export type Operation =
  /** `one-by-one`, `many` (one call) or `transaction`, which may roll back. */
  | {
      readonly do: 'enqueue'
      readonly jobs: readonly PlannedJob[]
      readonly how: 'one-by-one' | 'many' | 'commit' | 'roll-back'
    }
  | { readonly do: 'wait'; readonly ms: number }
  /** `job`: as in `after`. */
  | { readonly do: 'cancel'; readonly job: number }
  | { readonly do: 'pause' | 'resume'; readonly type: string }
  /** On the newest `count` dead letters that the desk lists. */
  | { readonly do: 'replay' | 'discard' | 'undo' | 'purge'; readonly count: number }
  | { readonly do: 'edit'; readonly behaviours: readonly Behaviour[] }
  | {
      readonly do: 'schedule'
      readonly name: string
      readonly everyMs: number
      readonly missed: 'skip' | 'once' | 'all'
    }
  | { readonly do: 'unschedule'; readonly name: string }
  | { readonly do: 'foreign'; readonly count: number }
