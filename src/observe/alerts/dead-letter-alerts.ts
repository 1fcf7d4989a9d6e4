import { messageOf } from '../../errors.ts'
import type { Alert, Events, JobFacts, MillEvents } from '../../events.ts'
import type { Log } from '../../job/definition.ts'
import type { Tenant } from '../../job/job.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { runbookEntry } from './runbook.ts'

/** An alert for people. It has ids and the redacted error, never a payload. */
export interface AlertMessage extends Alert {
  /** `high` for a critical type. */
  readonly severityLabel: string
  readonly title: string
  /** For a critical type: the job and its whole tenant. */
  readonly metadata?: { readonly jobType: string; readonly jobId: string; readonly tenant: Tenant | null }
}

/** Where these alerts go: a pager, a chat, an array in a test. */
export interface Alerter {
  send(alert: AlertMessage): unknown
}

export interface AlertParts {
  readonly alerter: Alerter
  readonly log: Log
  readonly clock?: Clock
  isCritical(type: string): boolean
}

/**
 * Sends one alert for every job that becomes a dead letter, whether its worker or the reaper moved it. An alerter that
 * fails is logged and never affects the work. Returns the detacher.
 *
 * @example
 * attachAlerts(mill.events, { alerter: { send: (alert) => page(alert) }, log, isCritical: (type) => type === 'data-deletion' })
 */
export function attachAlerts(events: Events, parts: AlertParts): () => void {
  const { clock = systemClock } = parts
  const onOutcome = ({ job, attempt, outcome }: MillEvents['lease.reaped']): void => {
    if (outcome.kind !== 'dead') return
    void send(parts, {
      ...deadLetterAlert(job, attempt, outcome.error.message, isCritical(parts, job)),
      sinceMs: clock.nowMs(),
    })
  }
  return events.attach({ 'job.settled': onOutcome, 'lease.reaped': onOutcome })
}

function isCritical(parts: AlertParts, { type, options }: JobFacts): boolean {
  return parts.isCritical(type) || (options?.name !== undefined && parts.isCritical(options.name))
}

function deadLetterAlert(
  job: JobFacts,
  attempt: number,
  error: string,
  isCritical: boolean,
): Omit<AlertMessage, 'sinceMs'> {
  const jobType = job.options?.name ?? job.type
  return {
    rule: isCritical ? 'CriticalDeadLetter' : 'DeadLetter',
    severity: isCritical ? 'error' : 'warning',
    severityLabel: isCritical ? 'high' : 'warning',
    title: isCritical ? `Critical job moved to dead letter: ${jobType}` : `Worker ${jobType} final failure`,
    text: `job ${job.id} is a dead letter after ${attempt} of ${job.attempts} attempts: ${error}`,
    labels: { jobType, jobId: job.id, ...(job.tenant !== null && { tenantId: job.tenant.orgId }) },
    value: null,
    runbook: runbookEntry(isCritical ? 'CriticalDeadLetters' : 'DeadLetters'),
    ...(isCritical && { metadata: { jobType, jobId: job.id, tenant: job.tenant } }),
  }
}

async function send({ alerter, log }: AlertParts, alert: AlertMessage): Promise<void> {
  try {
    await alerter.send(alert)
  } catch (error) {
    log.error('An alert could not be sent', { title: alert.title, error: messageOf(error) })
  }
}
