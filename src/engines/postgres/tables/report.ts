import type { Log } from '../../../job/definition.ts'
import { redact } from '../../../job/error-record.ts'
import { type ReaperMetrics, STAGE_UNKNOWN } from './metrics.ts'
import type { Reaped } from './reaper.ts'

/** What a dispatcher such as pg-boss is told of a job that may run again. Its worker claims by id, so telling twice is harmless. */
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

/** Says what was committed: one line and one count per job (E38, E54, E55, E57), then the listener, then the dispatcher. */
export function reportTo({ log, metrics, republish, onReaped }: ReportParts): (reaped: Reaped) => Promise<void> {
  return async (reaped) => {
    const { action, table, id, stage, lockedBy, attempt, nextEarliestRunAt } = reaped
    const fields = { table, job_id: id, stage, locked_by: lockedBy, attempt, reason: 'lease_expired' }
    const tags = { table, stage: stage ?? STAGE_UNKNOWN }
    // The rows are changed already: what a listener throws must not make the run look failed, nor end it.
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
      await attemptTo('Job could not be republished; its row is queued all the same', () =>
        republish({ table, id, attempt, nextEarliestRunAt }),
      )
    }
  }
}
