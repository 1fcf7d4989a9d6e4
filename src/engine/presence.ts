/**
 * Presence: who is at work now, over all processes. It is told by workers' events and read by health checks; no job
 * depends on it. Most engines keep it in their own store; a mill may besides say in another one that it lives.
 */

/** A job whose handler runs now. */
export interface JobAtWork {
  readonly id: string
  readonly attempt: number
  readonly startedAtMs: number
}

/** What a worker of ours says of itself. A beat of another program has none of it. */
export interface AtWork {
  readonly host: string
  readonly pid: number
  /** Of its process, and of no other: numbers of processes are used again. */
  readonly process?: string
  readonly startedAtMs: number
  /** Handlers at once at most, over all its types. */
  readonly concurrency: number
  /** Jobs of the beat's type whose handlers run now. */
  readonly running: number
  /** Those of them that have run longest, at most `JOBS_SHOWN_MAX`. */
  readonly jobs: readonly JobAtWork[]
}

/** A beat is written every few seconds by every worker: it must stay small. */
export const JOBS_SHOWN_MAX = 20

/** What one worker last said about one of its types. */
export interface Beat {
  readonly type: string
  /** The worker's id. */
  readonly instance: string
  readonly status: 'RUNNING' | 'SHUTTING_DOWN'
  readonly atMs: number
  /** When it last ended an attempt of a job of this type; null before the first. */
  readonly lastJobAtMs: number | null
  /** Jobs that wait for workers of this type; null where nobody counts them. */
  readonly lag: number | null
  /** Null while it runs. */
  readonly stoppingSinceMs: number | null
  readonly work?: AtWork
}

export interface Presence {
  /** Each is forgotten after `ttlMs`, unless it is said again. */
  beat(beats: readonly Beat[], ttlMs: number): Promise<void>
  /** A clean end: forgotten at once. Harmless for one that is not known. */
  gone(instance: string, types: readonly string[]): Promise<void>
  /** Those that live: one beat for each worker and type. */
  list(): Promise<readonly Beat[]>
}

/** How long one that went without a goodbye can be missed. */
export const SEEN_MS = 86_400_000

/** When a worker was last heard. */
export interface Seen {
  readonly type: string
  readonly instance: string
  readonly atMs: number
}

/**
 * A presence that remembers: whoever went without a goodbye is in it for a day after the last beat has run out, so that
 * it can be missed.
 */
export interface RememberingPresence extends Presence {
  /** Those that live, and those that should. */
  seen(): Promise<readonly Seen[]>
}
