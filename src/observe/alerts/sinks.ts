import { MillraceError, OptionError } from '../../errors.ts'
import type { Log } from '../../job/definition.ts'
import { omitUndefined, refuseUnknown } from '../../job/known-options.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type Duration, parseDurationMs } from '../../time/duration.ts'
import { toIso } from '../../time/iso.ts'
import { within } from '../../time/wait.ts'
import type { Alerter } from './dead-letter-alerts.ts'
import type { AlertNotice } from './evaluator.ts'

/** Where alerts go. A failure is logged and does not stop the alerting. */
export type AlertSink = (notice: AlertNotice) => unknown

/**
 * Writes alerts to a log: an error or a warning when they fire, an info line when they are resolved.
 *
 * @example
 * const alerting = startAlerting(mill, { rules: healthRules(), sinks: [logSink(createLog())] })
 */
export function logSink(log: Log): AlertSink {
  return (notice) => {
    const { alert, status, repeated } = notice
    const { rule, severity, labels, value, threshold, text, runbook } = alert
    const since = toIso(alert.sinceMs)
    const fields = { alert: rule, severity, labels, value, threshold, repeated, since, ...omitUndefined({ runbook }) }
    if (status === 'resolved') log.info(`Alert resolved: ${rule}`, fields)
    else if (severity === 'error' || severity === 'critical') log.error(`Alert ${rule}: ${text}`, fields)
    else log.warn(`Alert ${rule}: ${text}`, fields)
  }
}

/**
 * Writes the alert of each dead letter to a log, as an error or a warning.
 *
 * @example
 * const mill = await open('sqlite:./millrace.db', { alerter: logAlerter(createLog()) })
 */
export function logAlerter(log: Log): Alerter {
  return {
    send({ severity, severityLabel, title, text, labels, metadata, runbook }) {
      const fields = {
        severity: severityLabel,
        title,
        message: text,
        tags: labels,
        metadata,
        ...omitUndefined({ runbook }),
      }
      if (severity === 'error' || severity === 'critical') log.error(`Alert: ${title}`, fields)
      else log.warn(`Alert: ${title}`, fields)
    },
  }
}

export interface WebhookOptions {
  /** Sent with every request, such as a token. */
  readonly headers?: Readonly<Record<string, string>>
  /** For each of the two attempts; default: 5s. */
  readonly timeout?: Duration
  readonly clock?: Clock
}

const RETRY_AFTER_MS = 1_000

/**
 * Posts alerts as JSON to a URL. An attempt that fails, times out or gets 429 or 5xx is repeated once after a second.
 * Redirects are not followed.
 *
 * @example
 * const sink = webhookSink('https://hooks.example.com/alerts', { headers: { authorization: 'Bearer …' } })
 */
export function webhookSink(url: string, options: WebhookOptions = {}): AlertSink {
  refuseUnknown(options, { headers: true, timeout: true, clock: true }, 'webhookSink')
  const { headers = {}, clock = systemClock } = options
  const timeoutMs = parseDurationMs(options.timeout ?? '5s', 'timeout')
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new OptionError(`the webhook's URL is not http or https; give one such as 'https://host/path'`)
  }
  const post = async (body: string): Promise<number> => {
    const abort = new AbortController()
    const request = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }
    try {
      return await within(clock, timeoutMs, 'the webhook', async () => {
        const answer = await fetch(url, { ...request, redirect: 'manual', signal: abort.signal })
        await answer.body?.cancel()
        return answer.status
      })
    } finally {
      abort.abort()
    }
  }
  return async (notice) => {
    const body = JSON.stringify(bodyOf(notice))
    const first = await post(body).catch(() => null)
    if (isAccepted(first)) return
    if (first === null || first === 429 || first >= 500) {
      await clock.sleep(RETRY_AFTER_MS)
      const second = await post(body)
      if (isAccepted(second)) return
      throw refused(second)
    }
    throw refused(first)
  }
}

function isAccepted(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}

function refused(status: number): MillraceError {
  return new MillraceError('ERR_UNHEALTHY', `the webhook answered ${status}; check its URL and its token`)
}

/** Names and numbers, never a payload. */
function bodyOf({ status, repeated, alert }: AlertNotice) {
  const { rule, severity, severityLabel, labels, value, threshold, text, runbook, sinceMs, resolvedAtMs } = alert
  return {
    status,
    repeated,
    rule,
    severity,
    severityLabel,
    labels,
    value,
    threshold,
    text,
    ...omitUndefined({ runbook }),
    since: toIso(sinceMs),
    resolvedAt: resolvedAtMs === null ? null : toIso(resolvedAtMs),
  }
}
