import { Batcher } from '../../../src/engine/batcher.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { numberOf, textOf } from '../../database/columns.ts'
import type { Row, WorkloadDatabase } from '../../database/database.ts'
import type { DeliveryRecord, PriorDelivery, StatsUpdate, Webhook, WebhookRepositoryPort } from '../port.ts'
import { DeliveryLog } from './delivery-log.ts'
import { endpointOf, secretsOf } from './endpoint.ts'

/** What a worker looks up for twenty jobs at once is one statement each. */
const READS = { flightsMax: 2, itemsMax: 200, isWorthRepeating: () => false }

interface Looked {
  readonly deliveryId: string
  /** Only records of this job, for a redelivery. */
  readonly jobId?: string
}

const UPDATE_STATS = `UPDATE {webhook_endpoints} SET
  avg_latency_ms = CASE WHEN CAST($4 AS DOUBLE PRECISION) IS NULL THEN avg_latency_ms
    ELSE (avg_latency_ms * success_count + CAST($4 AS DOUBLE PRECISION)) / (success_count + 1) END,
  success_count = success_count + $2, failure_count = failure_count + $3,
  last_delivered_at = coalesce($5, last_delivered_at)
WHERE id = $1`

/** Since it was enabled: what failed before somebody enabled it again does not count. */
const RECENT_FAILURES = `SELECT count(DISTINCT d.delivery_id) AS failures FROM {webhook_deliveries} d
JOIN {webhook_endpoints} e ON e.id = d.webhook_id
WHERE d.webhook_id = $1 AND d.at > $2 AND d.at >= e.enabled_at AND d.status = 'failed' AND d.is_final`

const DISABLE = `UPDATE {webhook_endpoints}
SET is_enabled = $2, disabled_reason = $3, disabled_at = $4, updated_at = $4
WHERE id = $1 AND is_enabled RETURNING id`

/**
 * The endpoints and deliveries of a database, as the worker uses them.
 *
 * @example
 * const database = await openDatabase(url, { schemas: [webhooksSchema] })
 * const worker = new WebhookDispatchWorker(guardedHttp(), new WebhookRepository(database))
 */
export class WebhookRepository implements WebhookRepositoryPort {
  readonly #database: WorkloadDatabase
  readonly #clock: Clock
  readonly #log: DeliveryLog
  readonly #webhooks: Batcher<string, Webhook | null>
  readonly #priors: Batcher<Looked, PriorDelivery>

  constructor(database: WorkloadDatabase, { clock = systemClock }: { readonly clock?: Clock } = {}) {
    this.#database = database
    this.#clock = clock
    this.#log = new DeliveryLog(database)
    this.#webhooks = new Batcher((ids) => this.#findWebhooks(ids), READS)
    this.#priors = new Batcher((looked) => this.#findPriors(looked), READS)
  }

  async findById(webhookId: string): Promise<Webhook | null> {
    const [webhook = null] = await this.#webhooks.add([webhookId])
    return webhook
  }

  async #findWebhooks(ids: readonly string[]): Promise<readonly (Webhook | null)[]> {
    const sql = `SELECT * FROM {webhook_endpoints} WHERE id IN ${this.#database.dialect.texts('$1')}`
    const rows = await this.#database.read(sql, [JSON.stringify([...new Set(ids)])])
    const nowMs = this.#clock.nowMs()
    const found = new Map(
      rows.map((row) => [textOf(row, 'id'), { ...endpointOf(row), secrets: secretsOf(row, nowMs) }]),
    )
    return ids.map((id) => found.get(id) ?? null)
  }

  async findPrior(looked: Looked): Promise<PriorDelivery> {
    const [prior = UNTRIED] = await this.#priors.add([looked])
    return prior
  }

  async #findPriors(looked: readonly Looked[]): Promise<readonly PriorDelivery[]> {
    const sql = `SELECT delivery_id, job_id, status, status_code, latency_ms FROM {webhook_deliveries}
WHERE delivery_id IN ${this.#database.dialect.texts('$1')}`
    const rows = await this.#database.read(sql, [JSON.stringify(looked.map(({ deliveryId }) => deliveryId))])
    const byDelivery = Map.groupBy(rows, (row) => textOf(row, 'delivery_id'))
    return looked.map(({ deliveryId, jobId }) => {
      const found = byDelivery.get(deliveryId) ?? []
      return priorOf(jobId === undefined ? found : found.filter((row) => row.job_id === jobId))
    })
  }

  /** The record and the stats, once for each start of a job. */
  recordOutcome(delivery: DeliveryRecord): Promise<void> {
    return this.#log.add({ delivery, nowMs: this.#clock.nowMs() })
  }

  /** The record alone. */
  recordDelivery(delivery: DeliveryRecord): Promise<void> {
    return this.#log.addUncounted({ delivery, nowMs: this.#clock.nowMs() })
  }

  async updateStats(webhookId: string, stats: StatsUpdate): Promise<void> {
    const { successCount, failureCount, avgLatencyMs, lastDeliveredAt } = stats
    await this.#database.write([
      {
        sql: UPDATE_STATS,
        values: [
          ...[webhookId, successCount?.increment ?? 0, failureCount?.increment ?? 0, avgLatencyMs ?? null],
          lastDeliveredAt === undefined ? null : toIso(lastDeliveredAt.getTime()),
        ],
      },
    ])
  }

  async countRecentFailures(webhookId: string, windowMs: number): Promise<number> {
    const since = toIso(this.#clock.nowMs() - windowMs)
    const [row] = await this.#database.read(RECENT_FAILURES, [webhookId, since])
    return row === undefined ? 0 : numberOf(row, 'failures')
  }

  /** False if it is unknown or disabled already. */
  async disable(webhookId: string, reason: string): Promise<boolean> {
    const values = [webhookId, false, reason, toIso(this.#clock.nowMs())]
    const [rows = []] = await this.#database.write([{ sql: DISABLE, values }])
    return rows.length > 0
  }

  /** Resolves when everything is written. */
  idle(): Promise<void> {
    return this.#log.idle()
  }
}

const UNTRIED: PriorDelivery = { success: null, hasFailed: false }

function priorOf(rows: readonly Row[]): PriorDelivery {
  if (rows.length === 0) return UNTRIED
  const success = rows.find((row) => row.status === 'success')
  if (success === undefined) return { success: null, hasFailed: true }
  const facts = { statusCode: numberOf(success, 'status_code'), latencyMs: numberOf(success, 'latency_ms') }
  return { success: facts, hasFailed: false }
}
