/** What the worker counts, for Prometheus. */
import type { Counter, Histogram } from 'prom-client'
import { eventInstrument, type MakeInstrument } from '../../src/observe/metrics/instrument.ts'
import type { Metrics } from '../framework/metrics.ts'

export interface WebhookMetrics {
  /** For the worker: `openWebhooks({ metrics })`. */
  readonly metrics: Metrics
  /** For `attachMetrics`. */
  readonly instrument: MakeInstrument
}

const PREFIX = 'worker.webhook-dispatch.'
/** The counts of the worker that are outcomes, and the values of the label. */
const OUTCOMES: Readonly<Record<string, string>> = {
  delivered: 'delivered',
  delivery_failed: 'failed',
  skipped: 'skipped',
  already_delivered: 'already_delivered',
}
/** Up to the deadline of a request. */
const BUCKETS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

interface Meters {
  readonly deliveries: Counter
  readonly disabled: Counter
  readonly unrecorded: Counter
  readonly latency: Histogram
}

/**
 * Metrics of webhooks: `webhook_deliveries_total` by outcome, `webhook_disabled_total`, `webhook_bookkeeping_failed_total`
 * and `webhook_latency_seconds`, with the prefix of the others.
 *
 * @example
 * const { metrics, instrument } = webhookMetrics()
 * const webhooks = await openWebhooks({ engine, metrics })
 * const prometheus = await attachMetrics(webhooks.mill, { instruments: [instrument] })
 */
export function webhookMetrics(): WebhookMetrics {
  let meters: Meters | null = null
  return {
    metrics: {
      increment(name) {
        const short = name.slice(PREFIX.length)
        const outcome = Object.hasOwn(OUTCOMES, short) ? OUTCOMES[short] : undefined
        if (outcome !== undefined) meters?.deliveries.inc({ outcome })
        if (short === 'webhook_disabled') meters?.disabled.inc()
        if (short === 'bookkeeping_failed') meters?.unrecorded.inc()
      },
      timing(name, ms) {
        if (name === `${PREFIX}latency`) meters?.latency.observe(ms / 1_000)
      },
    },
    instrument({ prom, registry, prefix }) {
      const registers = [registry]
      const counter = (name: string, help: string, labelNames: readonly string[] = []): Counter =>
        new prom.Counter({ name: `${prefix}${name}`, help, labelNames: [...labelNames], registers })
      meters = {
        deliveries: counter('webhook_deliveries_total', 'Attempts to deliver webhooks, by outcome.', ['outcome']),
        disabled: counter('webhook_disabled_total', 'Endpoints disabled after too many failures.'),
        unrecorded: counter('webhook_bookkeeping_failed_total', 'Deliveries that could not be recorded.'),
        latency: new prom.Histogram({
          name: `${prefix}webhook_latency_seconds`,
          help: 'From the request to the end of the response, of successful deliveries.',
          buckets: BUCKETS_SECONDS,
          registers,
        }),
      }
      return eventInstrument(() => {
        meters = null
      })
    },
  }
}
