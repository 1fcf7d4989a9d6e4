/** Document B's key figures. Pure: they follow from what was counted. */
import type { TypeCounts } from '../../engine/engine.ts'
import { addTally, emptyTally, type Tally } from './window.ts'

/** What the ends of a window say. */
export interface EndedFigures {
  /** Jobs completed per minute. */
  readonly processingRate: number
  /** Completed jobs of those that were completed or became dead letters; 1 where there were none. */
  readonly successRate: number
  /** Failed attempts of all that ended, those included that were tried again (X083); 0 where there were none. */
  readonly attemptFailureRate: number
  /** Of attempts that completed, by nearest rank. Up to a second exact, above it rounded up by less than 1 %. */
  readonly latencyP50Ms: number
  readonly latencyP95Ms: number
  readonly latencyP99Ms: number
  /** Leases that ran out, per minute. */
  readonly leaseExpiryRate: number
  /** Jobs completed or dead: what the success rate is a share of. */
  readonly processed: number
  readonly completed: number
}

/** What stands in the store now. */
export interface StoredFigures {
  /** All that are queued: `due` and `delayed`. */
  readonly queueDepth: number
  readonly due: number
  readonly delayed: number
  readonly inProgressCount: number
  readonly deadLetterCount: number
}

export interface Figures extends EndedFigures, StoredFigures {
  readonly windowMs: number
  /** For how long the job that has been due longest waits; 0 where none does, null where the engine cannot say. */
  readonly queueAgeMs: number | null
  /** By type; types without one are left out. */
  readonly deadByType: Readonly<Record<string, number>>
  /** By type; types of which nothing ended in the window are left out. */
  readonly byType: Readonly<Record<string, EndedFigures>>
}

const MINUTE_MS = 60_000

export function endedFigures(tally: Tally, windowMs: number): EndedFigures {
  const { completed, dead, failed, expired, durations } = tally
  const processed = completed + dead
  const attempts = completed + failed
  const perMinute = (count: number): number => (count / windowMs) * MINUTE_MS
  return {
    processingRate: perMinute(completed),
    successRate: processed === 0 ? 1 : completed / processed,
    attemptFailureRate: attempts === 0 ? 0 : failed / attempts,
    latencyP50Ms: durations.percentile(0.5),
    latencyP95Ms: durations.percentile(0.95),
    latencyP99Ms: durations.percentile(0.99),
    leaseExpiryRate: perMinute(expired),
    processed,
    completed,
  }
}

export function storedFigures(counts: readonly TypeCounts[]): StoredFigures {
  const sum = (pick: (one: TypeCounts) => number): number => counts.reduce((total, one) => total + pick(one), 0)
  const due = sum(({ ready }) => ready)
  const delayed = sum((one) => one.delayed)
  return {
    queueDepth: due + delayed,
    due,
    delayed,
    inProgressCount: sum(({ inProgress }) => inProgress),
    deadLetterCount: sum(({ dead }) => dead),
  }
}

/** Over all types. */
export function totalOf(tallies: Iterable<Tally>): Tally {
  const total = emptyTally()
  for (const tally of tallies) addTally(total, tally)
  return total
}
