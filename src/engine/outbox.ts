import type { NewJob } from '../job/job.ts'
import type { Transaction } from './engine.ts'

/** A job on its way to another engine, as the store keeps it. */
export interface OutboundJob {
  /** Its place in the outbox. */
  readonly seq: number
  readonly job: NewJob
}

export interface OutboxSize {
  readonly jobs: number
  /** When the first of them was added; null when there is none. */
  readonly oldestMs: number | null
}

/** Jobs that wait in a store until another engine has them. Outboxes of several names share a store. */
export interface Outbox {
  /** In the order given, behind all that a committed transaction has added; within a transaction of the user's own where one is given. */
  add(name: string, jobs: readonly NewJob[], within?: Transaction): Promise<void>
  /** The first that are committed: at most `max`, and of no more than `bytesMax`, unless one alone is larger. */
  first(name: string, limits: { readonly max: number; readonly bytesMax: number }): Promise<readonly OutboundJob[]>
  /** Those that the other engine has. Repeating it is harmless: what others have added since is never meant. */
  remove(name: string, jobs: readonly OutboundJob[]): Promise<void>
  size(name: string): Promise<OutboxSize>
}
