import type { JobSummary } from '../../api/shapes.ts'

export interface Merged {
  /** The shown rows in their order, updated. */
  readonly rows: readonly JobSummary[]
  /** How many fresh rows are not among them. */
  readonly newer: number
  /** Shown rows that the fresh answer does not contain. */
  readonly absent: readonly string[]
}

/** Updates shown rows without moving them. Fresh jobs count as newer if they come before the last shown one. */
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
