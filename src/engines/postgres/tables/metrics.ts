/** The names of document E, and the age of what waits (X190). Times are in milliseconds. */
export type ReaperCounter = 'reaper.requeues' | 'reaper.failures'
export type ReaperMeasure = 'reaper.scan_duration_ms' | 'reaper.queue_age_ms'

/** A scan or a queue spans stages, so only what happened to one job has a stage (X184). */
export interface ReaperTags {
  readonly table: string
  readonly stage?: string
}

/** The tag of a job whose stage is NULL. */
export const STAGE_UNKNOWN = 'unknown'

/** Where the reaper reports. Implement it over whatever collects metrics; it is called after the commit and must not wait. */
export interface ReaperMetrics {
  count(name: ReaperCounter, tags: ReaperTags): void
  measure(name: ReaperMeasure, value: number, tags: ReaperTags): void
}

export const noMetrics: ReaperMetrics = Object.freeze({ count: () => {}, measure: () => {} })

/**
 * Counts in memory: for tests, and for programs that print their own figures.
 *
 * @example
 * const metrics = new CountedMetrics()
 * metrics.total('reaper.requeues', { table: 'jobs', stage: 'clip' })
 */
export class CountedMetrics implements ReaperMetrics {
  readonly #totals = new Map<string, number>()
  readonly #latest = new Map<string, number>()

  count(name: ReaperCounter, tags: ReaperTags): void {
    this.#totals.set(keyOf(name, tags), this.total(name, tags) + 1)
  }

  measure(name: ReaperMeasure, value: number, tags: ReaperTags): void {
    this.#latest.set(keyOf(name, tags), value)
  }

  total(name: ReaperCounter, tags: ReaperTags): number {
    return this.#totals.get(keyOf(name, tags)) ?? 0
  }

  /** Undefined when nothing was measured under exactly these tags. */
  latest(name: ReaperMeasure, tags: ReaperTags): number | undefined {
    return this.#latest.get(keyOf(name, tags))
  }
}

function keyOf(name: string, { table, stage }: ReaperTags): string {
  return JSON.stringify([name, table, stage ?? null])
}
