import type { JobSummary } from '../../api/shapes.ts'

export interface Merged {
  /** The rows that were shown, in their order, as they are now. */
  readonly rows: readonly JobSummary[]
  /** How many fresh ones are not among them. */
  readonly newer: number
  /** Shown rows of which the fresh answer says nothing. */
  readonly absent: readonly string[]
}

/** Brings shown rows up to date without moving one. Fresh jobs count as newer if they stand before the last shown one. */
export function mergeJobs(shown: readonly JobSummary[], fresh: readonly JobSummary[]): Merged {
  const byId = new Map(fresh.map((job) => [job.id, job]))
  const known = new Set(shown.map(({ id }) => id))
  const lastKnown = fresh.findLastIndex(({ id }) => known.has(id))
  const before = lastKnown === -1 ? fresh : fresh.slice(0, lastKnown)
  return {
    rows: shown.map((job) => byId.get(job.id) ?? job),
    newer: before.filter(({ id }) => !known.has(id)).length,
    absent: shown.filter(({ id }) => !byId.has(id)).map(({ id }) => id),
  }
}
