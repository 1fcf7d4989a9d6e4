import { redact } from '../../src/job/error-record.ts'
import type { Alerter, AlertMessage } from '../../src/observe/index.ts'

/** An alert in the worker framework's own format. */
export interface WorkerAlert extends Pick<AlertMessage, 'title' | 'metadata'> {
  readonly severity: string
  readonly message: string
  readonly tags: Readonly<Record<string, string>>
}

/** What a worker gives to `this.metrics.alert`. Its message is redacted as stored errors are; a tag without a value is left out. */
export interface GivenAlert extends Pick<WorkerAlert, 'severity' | 'title' | 'message'> {
  readonly tags?: Readonly<Record<string, string | undefined>>
}

/**
 * The framework's format of an alert: `warning`, or `high` for critical job types.
 *
 * @example
 * const mill = await open(url, { alerter: { send: (alert) => pager.send(workerAlert(alert)) } })
 */
export function workerAlert({ severityLabel, title, text, labels, metadata }: AlertMessage): WorkerAlert {
  return { severity: severityLabel, title, message: text, tags: labels, ...(metadata !== undefined && { metadata }) }
}

const SEVERITIES: Readonly<Record<string, AlertMessage['severity']>> = {
  info: 'info',
  low: 'info',
  warning: 'warning',
  medium: 'warning',
  high: 'error',
  error: 'error',
  critical: 'critical',
}

/** The same alert for an `Alerter`, as the mill sends its own. A word of your own for the severity is a warning. */
export function toAlertMessage(alert: GivenAlert, rule: string, sinceMs: number): Parameters<Alerter['send']>[0] {
  const tags = Object.entries(alert.tags ?? {}).filter((tag): tag is [string, string] => tag[1] !== undefined)
  return {
    rule,
    severity: (Object.hasOwn(SEVERITIES, alert.severity) ? SEVERITIES[alert.severity] : undefined) ?? 'warning',
    severityLabel: alert.severity,
    title: alert.title,
    text: redact(alert.message),
    labels: Object.fromEntries(tags),
    value: null,
    sinceMs,
  }
}
