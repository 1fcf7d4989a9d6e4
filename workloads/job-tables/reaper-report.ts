import type { Log } from '../../src/job/definition.ts'
import { redact } from '../../src/job/error-record.ts'
import type { Reaped } from './reaper.ts'

/** For a dispatcher such as pg-boss. Its worker claims by id, so a repeated call is harmless. */
export interface RequeuedJob {
  readonly table: string
  readonly id: string
  readonly attempt: number
  readonly nextEarliestRunAt: Date | null
}

export type Republish = (job: RequeuedJob) => Promise<void> | void

export interface ReportParts {
  readonly log: Log
  readonly metrics: ReaperMetrics
  readonly republish?: Republish
  readonly onReaped?: (reaped: Reaped) => void
}

/** Reports one committed job: a log line, a count, then the listener, then the dispatcher. */
export function reportTo({ log, metrics, republish, onReaped }: ReportParts): (reaped: Reaped) => Promise<void> {
  return async (reaped) => {
    const { action, table, id, stage, lockedBy, attempt, nextEarliestRunAt } = reaped
    const fields = { table, job_id: id, stage, locked_by: lockedBy, attempt, reason: 'lease_expired' }
    const tags = { table, stage: stage ?? STAGE_UNKNOWN }
    // The rows are committed: an error of a listener must neither end the run nor make it look failed.
    const attemptTo = async (what: string, run: () => void | Promise<void>): Promise<void> => {
      try {
        await run()
      } catch (error) {
        const text = redact(error instanceof Error ? error.message : String(error))
        log.error(what, { table, job_id: id, error: text })
      }
    }
    if (action === 'requeued') {
      log.warn('Job requeued', { event: 'reaper:requeued', ...fields, next_earliest_run_at: nextEarliestRunAt })
      await attemptTo('Metrics failed', () => metrics.count('reaper.requeues', tags))
    } else {
      log.error('Job failed', { event: 'reaper:failed(timeout)', ...fields })
      await attemptTo('Metrics failed', () => metrics.count('reaper.failures', tags))
    }
    await attemptTo('A listener failed', () => onReaped?.(reaped))
    if (action === 'requeued' && republish !== undefined) {
      await attemptTo('Job could not be republished; its row is queued', () =>
        republish({ table, id, attempt, nextEarliestRunAt }),
      )
    }
  }
}

export type ReaperCounter = 'reaper.requeues' | 'reaper.failures'
export type ReaperMeasure = 'reaper.scan_duration_ms' | 'reaper.queue_age_ms'

/** The age of a queue has no stage. */
export interface ReaperTags {
  readonly table: string
  readonly stage?: string
}

/** The tag of a job whose stage is NULL. */
export const STAGE_UNKNOWN = 'unknown'
/** The tag of a scan, which spans the stages of its table. */
export const STAGE_ALL = 'all'

/** Called after the commit. It must not block. */
export interface ReaperMetrics {
  /** Jobs with these tags run, so they may be counted later. */
  announce?(tags: Required<ReaperTags>): void
  count(name: ReaperCounter, tags: ReaperTags): void
  measure(name: ReaperMeasure, value: number, tags: ReaperTags): void
}

export const noMetrics: ReaperMetrics = Object.freeze({ count: () => {}, measure: () => {} })

/**
 * Counts in memory, for tests and programs without a metrics library.
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

  /** Undefined if nothing was measured with exactly these tags. */
  latest(name: ReaperMeasure, tags: ReaperTags): number | undefined {
    return this.#latest.get(keyOf(name, tags))
  }
}

function keyOf(name: string, { table, stage }: ReaperTags): string {
  return JSON.stringify([name, table, stage ?? null])
}
