import type { Log } from '../../src/job/definition.ts'
import { errorText } from '../../src/job/error-record.ts'
import type { Alerter } from '../../src/observe/index.ts'
import type { Clock } from '../../src/time/clock.ts'
import { type GivenAlert, toAlertMessage } from './alerts.ts'

/** Where a worker counts. Bring your own: a few lines over any client will do. */
export interface Metrics {
  increment(name: string): void
  timing(name: string, ms: number): void
}

/** What a worker has as `this.metrics`: nothing that it calls can fail. */
export interface WorkerMetrics extends Metrics {
  /** Sends an alert, or logs it as a warning if the worker was given no alerter. */
  alert(alert: GivenAlert): Promise<void>
}

export const noMetrics: Metrics = Object.freeze({ increment: () => {}, timing: () => {} })

interface MetricsParts {
  readonly prefix: string
  readonly log: Log
  readonly alerter: Alerter | null
  readonly clock: Clock
}

/** The same under a prefix. A collector or alerter that fails is logged and never disturbs the work. */
export function prefixed(metrics: Metrics, { prefix, log, alerter, clock }: MetricsParts): WorkerMetrics {
  const guarded = (name: string, collect: (name: string) => void): void => {
    try {
      collect(`${prefix}.${name}`)
    } catch (error) {
      log.warn('A metric could not be collected', { metric: `${prefix}.${name}`, error: errorText(error) })
    }
  }
  return {
    increment: (name) => guarded(name, (full) => metrics.increment(full)),
    timing: (name, ms) => guarded(name, (full) => metrics.timing(full, ms)),
    async alert(alert) {
      const message = toAlertMessage(alert, prefix, clock.nowMs())
      const { severityLabel: severity, title, text, labels: tags } = message
      if (alerter === null) return log.warn('Alert', { severity, title, text, tags })
      try {
        await alerter.send(message)
      } catch (error) {
        log.error('An alert could not be sent', { title, error: errorText(error) })
      }
    },
  }
}
