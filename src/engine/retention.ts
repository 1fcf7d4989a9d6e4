/** The part of the port that retention stands on. What is kept for how long is the keeper's to decide. */

/** Jobs that finished one way before a time. Where several rules fit a job, the one that names its type counts. */
export interface RetentionRule {
  /** `ended`: cancelled, superseded or discarded. `dead`: dead letters, each removal with an entry in the audit. */
  readonly what: 'completed' | 'ended' | 'dead'
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

export interface Retention {
  /**
   * Looks at no more than `max` jobs, oldest first, and removes with their history those that a rule gives up. One that
   * an unfinished job comes `after` is kept. Each step is short, so that nobody waits for it.
   */
  sweep(rules: readonly RetentionRule[], step: { readonly from: string | null; readonly max: number }): Promise<Sweep>
  /** What the jobs take now, without what is free already. */
  usedBytes(): Promise<number>
  /** Gives a little free space back to the file system. False when there is none left to give. */
  compact(): Promise<boolean>
}
