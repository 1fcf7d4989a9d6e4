import { messageOf } from '../errors.ts'
import type { Events, JobFacts, MillEvents } from '../events.ts'
import type { Log } from '../job/definition.ts'
import type { Tenant } from '../job/job.ts'

/** Something a person should look at. It carries ids and the redacted error, never a payload (I12). */
export interface Alert {
  readonly severity: 'warning' | 'high'
  readonly title: string
  readonly message: string
  readonly tags: Readonly<Record<string, string>>
  /** Of a critical type's: whose job it was, in full (A168). */
  readonly metadata?: { readonly jobType: string; readonly jobId: string; readonly tenant: Tenant | null }
}

/** Where alerts go: a pager, a chat, a test's array. */
export interface Alerter {
  send(alert: Alert): unknown
}

export interface AlertParts {
  readonly alerter: Alerter
  readonly log: Log
  isCritical(type: string): boolean
}

/**
 * One alert for every move to the dead letters, whoever made it: the worker after a last or final failure, or the reaper
 * after a last expired lease. Sending is best effort: an alerter that fails is logged and never disturbs the work (X030).
 * Returns the detacher.
 *
 * @example
 * attachAlerts(mill.events, { alerter: { send: (alert) => page(alert) }, log, isCritical: (type) => type === 'data-deletion' })
 */
export function attachAlerts(events: Events, parts: AlertParts): () => void {
  const onOutcome = ({ job, attempt, outcome }: MillEvents['lease.reaped']): void => {
    if (outcome.kind === 'dead')
      void send(parts, deadLetterAlert(job, attempt, outcome.error.message, parts.isCritical(job.type)))
  }
  const detachers = [events.on('job.settled', onOutcome), events.on('lease.reaped', onOutcome)]
  return () => {
    for (const detach of detachers) detach()
  }
}

/** A critical type is louder; either way there is one alert per dead letter, not one per observer (X037, X038). */
function deadLetterAlert(job: JobFacts, attempt: number, error: string, isCritical: boolean): Alert {
  return {
    severity: isCritical ? 'high' : 'warning',
    title: isCritical ? `Critical job moved to dead letter: ${job.type}` : `Worker ${job.type} final failure`,
    message: `job ${job.id} is a dead letter after ${attempt} of ${job.attempts} attempts: ${error}`,
    tags: { jobType: job.type, jobId: job.id, ...(job.tenant !== null && { tenantId: job.tenant.orgId }) },
    ...(isCritical && { metadata: { jobType: job.type, jobId: job.id, tenant: job.tenant } }),
  }
}

async function send({ alerter, log }: AlertParts, alert: Alert): Promise<void> {
  try {
    await alerter.send(alert)
  } catch (error) {
    log.error('An alert could not be sent', {
      title: alert.title,
      error: messageOf(error),
    })
  }
}
