/** The part of the port that retention stands on. What is kept for how long is the keeper's to decide. */
import { isEnded, type JobState } from '../job/states.ts'
import type { Actor } from './dead-letters.ts'

/** The ways in which a job can be over. */
export type Finished = 'completed' | 'ended' | 'dead'

/** Jobs that finished one way before a time. Where several rules fit a job, the one that names its type counts. */
export interface RetentionRule {
  /** `ended`: cancelled, superseded or discarded. `dead`: dead letters, each removal with an entry in the audit. */
  readonly what: Finished
  /** Every type that no other rule of the same `what` names, when absent. */
  readonly type?: string
  /** Finished before this time; null keeps them all. */
  readonly beforeMs: number | null
}

export interface Sweep {
  readonly removed: number
  /** Where to go on; null when all has been looked at. */
  readonly next: string | null
}

export interface SweepStep {
  readonly from: string | null
  readonly max: number
  /** Counts what would go, and removes nothing. */
  readonly dryRun?: boolean
  /** Recorded in the audit for removed dead letters. Default: `RETENTION_BY`. */
  readonly by?: Actor
}

export const RETENTION_BY: Actor = Object.freeze({ who: 'retention', reason: 'older than is kept' })
/** Who stands in the audit when the dead letters of a type are kept by number. */
export const KEEP_LIMIT_BY: Actor = Object.freeze({ who: 'retention', reason: 'more than removeOnFail keeps' })

/**
 * Whether a finished job goes when another of its type finishes with `keep`. `newer`: how many finished ones of the type
 * are newer, no fewer than `keep`; `own`: what its stored options say. A job's own option decides about that job
 * alone, and a definition's about all that have none: so nothing goes that nobody gave up.
 */
export function isBeyondKeepLimit(
  own: unknown,
  newer: number,
  { keepIsOwn = false }: { readonly keepIsOwn?: boolean | undefined },
): boolean {
  if (own === undefined) return !keepIsOwn
  return typeof own === 'number' && own <= newer
}

/** How long the highest number of a latest key is remembered after the last job of the key that could still run. */
export const LATEST_IDLE_MS = 604_800_000

export interface Retention {
  /**
   * Looks at no more than `max` jobs, in the order of their arrival, and removes with their history those that a rule
   * gives up. One that an unfinished job comes `after` is kept. Each step is short, so that nobody waits for it.
   */
  sweep(rules: readonly RetentionRule[], step: SweepStep): Promise<Sweep>
  /** What the jobs take now, without what is free already. */
  usedBytes(): Promise<number>
  /**
   * Forgets some latest keys that have been idle for long; SQLite also returns some free pages to the file system. Each
   * call does a little, so that it can run between claims. False when there is nothing left to do.
   */
  compact(): Promise<boolean>
}

/** How a job is over; null while it may still run. */
export function finishedAs(state: JobState): Finished | null {
  if (state === 'completed') return 'completed'
  if (state === 'dead_letter') return 'dead'
  return isEnded(state) ? 'ended' : null
}

/** Whether the rules give up a job that finished `completedAtMs`. A rule that names the type goes before one that names none. */
export function givesUp(
  rules: readonly RetentionRule[],
  job: { readonly what: Finished; readonly type: string; readonly completedAtMs: number },
): boolean {
  const fitting = rules.filter(({ what }) => what === job.what)
  const rule = fitting.find(({ type }) => type === job.type) ?? fitting.find(({ type }) => type === undefined)
  return rule !== undefined && rule.beforeMs !== null && job.completedAtMs < rule.beforeMs
}
