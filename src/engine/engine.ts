/**
 * The engine port: what a storage engine must do, and nothing a policy could decide.
 *
 * Engines store, exclude, fence and recover. The core (job/, worker/, keeper/) decides how often, how long and why.
 * `conformance/` decides whether an engine is right.
 */
import type { JobEvent, JobView, NewJob } from '../job/job.ts'
import type { JobSearch } from '../job/search.ts'
import type { SharedSlots } from '../job/slots.ts'
import type { JobState } from '../job/states.ts'
import type { Capabilities } from './capabilities.ts'
import type { Actor, DeadLetters } from './dead-letters.ts'
import type { JobLogs } from './job-logs.ts'
import type { Outbox } from './outbox.ts'
import type { Lease, Lost, NotApplied, Settlement } from './outcome.ts'
import type { Records } from './records.ts'
import type { Retention } from './retention.ts'
import type { Step } from './scan.ts'

export type { DeadLetter, DeadLetters } from './dead-letters.ts'

/** An engine is open from the start: its `connect` resolves once the store has been reached and checked. */
export interface Engine {
  readonly name: string
  readonly capabilities: Capabilities
  /**
   * A URL under which another thread of this process reaches the same data, or null where only this thread can.
   * The worker renews leases from a thread of its own through it, so that a handler that blocks the event loop
   * does not lose its lease.
   */
  readonly threadUrl: string | null

  /**
   * Idempotent. Consumers are closed with it; leases still held simply run out. Afterwards every call rejects with a
   * ClosedError.
   */
  close(): Promise<void>
  /** Rejects if a claim could not be served right now. */
  ping(): Promise<void>

  /**
   * Receipts in the order given. All or nothing exactly when `capabilities.enqueueAtomic`. A rejection means unknown,
   * and repeating the call with the same jobs is safe where `idempotentEnqueue`.
   *
   * A job with `after` is not handed out until each of those is completed, has ended or is removed, or is a dead letter
   * and `ifDead` is not `wait`. A job that was released by a dead letter and has not started waits again when that letter
   * is replayed. Each must be stored or come earlier in `jobs`, otherwise an UnknownJobError rejects the whole batch; a
   * `duplicate` stands for the job that it duplicates. Engines never end a job because of another; the worker does.
   */
  enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]>
  consume(subscription: Subscription): Promise<Consumer>
  counts(): Promise<Counts>

  /** Facets: an engine can do what it has the facet for. What it does not have is refused before it is called. */
  readonly inspector?: Inspector
  /** Where there is no `inspector`: what a log can tell of its records. It has neither results nor histories. */
  readonly lookup?: Lookup
  readonly controls?: Controls
  readonly deadLetters?: DeadLetters
  /** Schedules, leadership, presence and pauses are kept in it. */
  readonly records?: Records
  readonly retention?: Retention
  /** What handlers say, kept with their jobs. */
  readonly logs?: JobLogs
  /** Only where `transactionalEnqueue`: jobs that wait there for another engine. */
  readonly outbox?: Outbox
  /** Workers of all processes that the store knows by itself. Only where there are no `records` to keep them in. */
  workers?(): Promise<readonly KnownWorker[]>
  /** Looks for what is wrong, or soon will be, with the store and its jobs. Changes nothing. */
  diagnose?(options?: DiagnoseOptions): Promise<readonly Finding[]>
}

/** A worker as the store itself knows it, such as a member of a consumer group. */
export interface KnownWorker {
  /** The id that its worker has given itself, or that the store has given to one of another program. */
  readonly id: string
  readonly types: readonly string[]
  /** By type, how many jobs it and its group have yet to settle. Left out where the store does not tell. */
  readonly lags?: Readonly<Record<string, number>>
  /** Where it runs, as the store sees it. */
  readonly host?: string
  /** The parts of its types that it alone works on. */
  readonly holds?: readonly HeldPart[]
}

/** A part of a type's jobs that goes to one worker: a partition. */
export interface HeldPart {
  readonly type: string
  readonly partition: number
  /** From the first job of it that is not settled to the last one. */
  readonly lag: number
}

/** A transaction of the user's own, in whatever form the engine documents: for SQLite the database handle. */
export type Transaction = object

export interface Receipt {
  /** The id under which the work is known: the first job's where the status is `duplicate`. */
  readonly id: string
  /**
   * `duplicate`: a live job has the key (or this very id). `replaced`: an older waiting job of the latest key gave way.
   * `stale`: a newer version of the latest key was there already, so nothing was stored.
   */
  readonly status: 'enqueued' | 'duplicate' | 'replaced' | 'stale'
}

export interface SubscribedType {
  readonly type: string
  readonly leaseMs: number
  /**
   * At most `max` claims of the type in any `perMs`, over all consumers; enforced when `capabilities.limits` is shared. To
   * be read at every claim: an operator may change it while the consumer is open.
   */
  readonly limit?: { readonly max: number; readonly perMs: number } | undefined
  /**
   * At most `max` jobs of the type hold a lease at once, over all consumers, or that many of each tenant; enforced by claims of
   * ready jobs when `capabilities.slots` is shared. To be read at every claim too.
   */
  readonly slots?: SharedSlots | undefined
  /** Starts in total of a job whose producer did not say: records of other programs, where the engine takes such. */
  readonly attempts?: number
}

export interface Subscription {
  /** `every`: for a reaper, which may claim only what has expired. */
  readonly types: readonly SubscribedType[] | 'every'
  /** The worker's id: `hostname:pid:suffix`. */
  readonly worker: string
  /**
   * A due job counts as one rank more urgent for each `ageingMs` that it has waited since its due time (`effectiveRank`);
   * left out: strict priority. Given only where `capabilities.order` is `ageing-priority`.
   */
  readonly ageingMs?: number
  /** Whether a type is paused now. Claims leave it out; an engine that reads ahead reads no more of it meanwhile. */
  readonly isPaused?: (type: string) => boolean
  /** Aborts when the worker is stopped before it has begun: who still waits to be taken in gives up, and rejects. */
  readonly signal?: AbortSignal
}

export interface ClaimRequest {
  readonly max: number
  /** Upper bound on waiting for work. The engine may return earlier, never later. */
  readonly waitMs: number
  readonly signal: AbortSignal
  /**
   * `ready` (the default) counts an attempt. `expired` hands a dead holder's job over under a fresh token and counts
   * nothing: the start was counted already.
   */
  readonly from?: 'ready' | 'expired'
  /** A lower bound for single types, by name; 0 leaves the type out. Types not named are bounded by `max` alone. */
  readonly perType?: Readonly<Record<string, number>>
}

export interface Consumer {
  /**
   * Postgres and Redis: their server works while a claim is under way, so the worker asks for the next jobs before it runs the
   * last ones. Elsewhere it asks afterwards, so that the settles of short jobs and the next claim share a transaction.
   */
  readonly isRemote?: boolean
  /**
   * Whether a claim that waits looks again by itself, as often as the engine says where a wake-up is missed. A worker whose
   * user did not say how often to look then asks again every few seconds instead of every second.
   */
  readonly looksAgain?: boolean
  /** Whether the server begins a second claim as soon as the first is done. While many jobs wait, the worker then sends it already. */
  readonly claimsAhead?: boolean
  /**
   * At most `max` leases, each held by nobody else, the most urgent first. Empty on timeout, on abort and after close;
   * it never throws for those. Wake-ups are the engine's business: the core knows only `waitMs`. A rejection brings
   * nobody a lease: where an answer was lost the engine takes back what the claim has leased, and its start does not count.
   */
  claim(request: ClaimRequest): Promise<readonly Lease[]>
  /**
   * Extends what is still held, all in one call, and returns what is not. It reads only `job.id`, `job.type` and
   * `token` of a lease, because the worker's renewal thread knows no more than these.
   */
  renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]>
  /**
   * Applies each outcome if, and only if, its token still holds and has not expired; returns what it refused. Atomic
   * per lease. A rejection means unknown: the lease may be lost, it is never to be taken as done. What the store cannot
   * keep for its text is answered as `unstorable`, and harms no other outcome of the batch.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly NotApplied[]>
  /** Stores the progress of a running job; fenced like `settle`. Resolves to false when the lease is gone. */
  report(lease: Lease, progress: string): Promise<boolean>
  /** Returns the unsubscriber. */
  listen(listener: ConsumerListener): () => void
  /** Stops handing out work. Leases still held may be settled until the engine is closed. */
  close(): Promise<void>
}

/** What an engine learns outside any call. */
export interface ConsumerListener {
  /** A lease was revoked, superseded or cancelled. */
  readonly onLost?: (lost: Lost) => void
  /** Trouble that no call can reject with, such as a server clock that was set. The engine goes on; the worker logs it. */
  readonly onTrouble?: (error: unknown) => void
}

/** Jobs of each type by what they are doing now. `delayed` jobs are queued and due later or have to wait for others; ended jobs are not counted. */
export interface TypeCounts {
  readonly ready: number
  readonly delayed: number
  readonly inProgress: number
  readonly completed: number
  readonly dead: number
}
export type Counts = Readonly<Record<string, TypeCounts>>

export interface JobFilter {
  /** As views show it: `dead_letter` does not include cancelled, superseded and discarded jobs. */
  readonly state?: JobState
  readonly type?: string
  readonly limit: number
  /** The last id of the page before: only what comes behind it is listed, also when that job has gone meanwhile. */
  readonly before?: string
}

/** Single jobs as they are now. A filter that cannot be answered is refused with an UnsupportedError. */
export interface Lookup {
  /** Each in the order of its id; null for a job that is unknown or removed. */
  find(ids: readonly string[]): Promise<readonly (JobView | null)[]>
  /** Newest first, page by page. A version that took the place of an older one of its latest key may stand there. */
  list(filter: JobFilter): Promise<readonly JobView[]>
  /**
   * One step of a search: looks at up to `max` jobs behind `before`, newest first, and returns at least those that match.
   * What an index or the text of a row rules out is left out; the caller checks the others. Left out where a search has to
   * read the list.
   */
  search?(search: JobSearch, step: { readonly before?: string; readonly max: number }): Promise<Step<JobView, string>>
  /** The queued job that has been due longest, whatever it waits for. Null when none is due. */
  oldestDue(): Promise<JobView | null>
}

/** A flow is stored in one call, so its jobs have neighbouring ids. More would be read for every look at a job. */
export const SUCCESSORS_SEARCHED = 1_000

export interface Inspector extends Lookup {
  /** Oldest first. */
  history(id: string): Promise<readonly JobEvent[]>
  /**
   * The ids of jobs that come directly after any of these (`after`): all that may still run, and of those that are over at
   * least the ones among the next `SUCCESSORS_SEARCHED` jobs by id, as the jobs of one flow are.
   */
  successors(ids: readonly string[]): Promise<readonly string[]>
  /** Resolves with the job as soon as it is completed, dead or ended; with its present view at the time-out or abort. */
  waitFor(id: string, wait: { readonly waitMs: number; readonly signal: AbortSignal }): Promise<JobView | null>
}

export interface Controls {
  /**
   * Ends a queued or running job. A running one loses its lease at once: its holder hears of it by `listen` or at the
   * next renewal. False when the job is unknown or has finished already.
   */
  cancel(id: string, by: Actor): Promise<boolean>
}

/** One thing that was checked. A reader acts on `advice`; a program on `severity` and `subject`. */
export interface Finding {
  /** `error`: jobs are lost, stuck or in danger now. `warning`: look at it, and decide whether it may stay. */
  readonly severity: 'ok' | 'warning' | 'error'
  /** What was checked, in a word or two; several findings may share one. */
  readonly subject: string
  readonly detail: string
  /** What to do; null exactly when the severity is `ok`. */
  readonly advice: string | null
}

export interface DiagnoseOptions {
  /** Also reads the whole store for damage, which may take minutes. */
  readonly deep?: boolean
  /** By type, how many jobs may wait before it is a warning, and an error. Kafka only: its backlog is bounded by retention, and an operator alone knows how much is normal. */
  readonly lag?: Readonly<Record<string, { readonly warning: number; readonly critical: number }>>
  /** The longest that a handler takes. Kafka only: it aborts a handler when its partition moves to another worker. */
  readonly handlerMs?: number
}
