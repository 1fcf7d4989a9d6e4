/** The part of the port that holds single types back. Which jobs a worker then leaves alone is the worker's business. */
import type { Actor } from './dead-letters.ts'

export interface Pause extends Actor {
  readonly type: string
  readonly sinceMs: number
}

/**
 * Types of which nothing is started. Their jobs stay queued and may be enqueued as before; those that run go on to their
 * end. A pause outlives every process where the engine survives one, and a worker heeds it within a second.
 */
export interface Pauses {
  /** False when it was paused already; the first pause stays as it was. */
  pause(type: string, by: Actor): Promise<boolean>
  /** False when it was not paused. */
  resume(type: string): Promise<boolean>
  /** By type. */
  list(): Promise<readonly Pause[]>
  /** Present where every change is heard at once, so that nobody needs to look. Returns the unsubscriber. */
  onChange?(listener: () => void): () => void
}
