/**
 * What the harness asks of everything it measures. A contender is small on purpose: drain, pickup, memory and the rest
 * are built from `enqueue…` and `work`, in one place and alike for all.
 */
import type { Lack, MixedJob, MixedPayload } from './mixture.ts'
import type { Payload } from './payload.ts'

/** Contenders of one family do the same work on the same kind of store and are compared with each other. */
export type FamilyName = 'sqlite' | 'postgres' | 'redis' | 'kafka'

/** The facts about a contender, as data: the harness reads them before any of its code is loaded. */
export interface ContenderEntry {
  readonly name: string
  /** For tables and the picture. */
  readonly title: string
  readonly family: FamilyName
  /** What a reader must know to compare it fairly: durability above all. */
  readonly notes: string
  /** Contenders with the same storage may be given the same prepared data. */
  readonly storage: string
  /** Scenarios it does not take part in, and why. */
  readonly excused: Readonly<Record<string, string>>
  /** Scenarios of which something is left out for it, and what. */
  readonly caveats?: Readonly<Record<string, string>>
  /** A module with `create`, loaded only in the processes that measure it. */
  readonly module: string
}

export interface ContenderModule {
  create(entry: ContenderEntry): Contender
}

/** Where a contender keeps its data; every process of one measurement is given the same place. */
export interface Place {
  readonly dir: string
  /** A database, prefix or topic of its own on the family's server, where the family has one. */
  readonly url: string | null
}

export interface Contender {
  /** Jobs in one call of `enqueueBulk`, as the contender's own documentation would have it. */
  readonly bulkSize: number
  /** The most jobs of a drain, for a contender that works job by job, whatever their number. */
  readonly drainedMax?: number
  /** Called once in each process, before anything else; creates the store when it is not there. */
  setup(place: Place): Promise<void>
  enqueueOne(payload: Payload): Promise<void>
  enqueueBulk(payloads: readonly Payload[]): Promise<void>
  /** Starts a worker in this process. */
  work(request: WorkRequest): Promise<Working>
  /** Jobs that are due or running and not finished yet: 0 once everything delivered was settled too. */
  remaining(): Promise<number>
  teardown(): Promise<void>
  readonly claiming?: Claiming
  readonly retaining?: Retaining
  readonly starting?: Starting
  readonly mixing?: Mixing
  readonly listing?: Listing
}

export interface WorkRequest {
  readonly concurrency: number
  /** The handler. It counts the delivery and returns; a promise means that the job is still running. */
  onJob(payload: Payload): Promise<void> | void
  /** Whatever error reached the user of the worker. */
  onError(error: unknown): void
}

export interface Working {
  /** Takes no more jobs and resolves when those in hand are settled. */
  stop(): Promise<void>
}

/** How many jobs there are in each condition. Indices in payloads run from 0 within each condition. */
export interface Levels {
  readonly waiting: number
  readonly scheduled: number
  readonly finished: number
}

/** Claiming by hand, without a worker around it, on a store of any size. */
export interface Claiming {
  /** Brings the store up to these levels through a connection of its own; what is there already stays. */
  fill(levels: Levels): Promise<void>
  claim(max: number): Promise<Claimed>
}

/** Removing finished jobs beside whatever else goes on. */
export interface Retaining {
  /** Removes all that have finished before this call and gives their space back; answers how many. */
  retain(): Promise<number>
}

/** The mixture of jobs that users have, with the contender's own types, priorities, delays and retries. */
export interface Mixing {
  readonly lacks: ReadonlySet<Lack>
  enqueue(job: MixedJob): Promise<void>
  work(request: MixedRequest): Promise<Working>
}

export interface MixedRequest {
  readonly concurrency: number
  /** The handler; a rejection is an attempt that failed. */
  onJob(payload: MixedPayload): Promise<void>
  onError(error: unknown): void
}

/** Looking into a store of any size. */
export interface Listing {
  /** That many jobs in all conditions, through a connection of its own. */
  fill(jobs: number): Promise<void>
  /** How many jobs there are of each type and state. */
  counts(): Promise<unknown>
  /** Serves lists over HTTP on loopback. */
  serve(): Promise<{ readonly url: string; close(): Promise<void> }>
}

/** A process of the installed package, from start to exit. */
export interface Start {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Whole programs that use the contender as it is installed. */
export interface Starting {
  /** Once for all rounds. */
  install(installed: Place): Promise<void>
  /** By name; each call is for one start, and `n` the number of the job that it enqueues. */
  programs(installed: Place, store: Place): Readonly<Record<string, (n: number) => Start>>
}

export interface Claimed {
  readonly payloads: readonly Payload[]
  complete(): Promise<void>
}
