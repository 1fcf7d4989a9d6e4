import type { AlertMessage } from '../../src/observe/index.ts'

/** An alert in the worker framework's own format. */
export interface WorkerAlert extends Pick<AlertMessage, 'title' | 'metadata'> {
  readonly severity: string
  readonly message: string
  readonly tags: Readonly<Record<string, string>>
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
