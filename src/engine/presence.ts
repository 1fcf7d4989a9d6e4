/**
 * Presence: who is at work now, over all processes. It is told by workers' events and read by health checks; no job
 * depends on it. Where a beat is kept is no matter of the engine: a mill on SQLite may say that it lives in Redis.
 */

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
}

export interface Presence {
  /** Each is forgotten after `ttlMs`, unless it is said again. */
  beat(beats: readonly Beat[], ttlMs: number): Promise<void>
  /** A clean end: forgotten at once. Harmless for one that is not known. */
  gone(instance: string, types: readonly string[]): Promise<void>
  /** Those that live: one beat for each worker and type. */
  list(): Promise<readonly Beat[]>
}

/** When a worker was last heard. */
export interface Seen {
  readonly type: string
  readonly instance: string
  readonly atMs: number
}

/**
 * A presence that remembers: whoever went without a goodbye is in it for a day after the last beat has run out, so that
 * it can be missed (X156).
 */
export interface RememberingPresence extends Presence {
  /** Those that live, and those that should. */
  seen(): Promise<readonly Seen[]>
}
