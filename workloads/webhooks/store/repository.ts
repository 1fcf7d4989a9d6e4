import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { numberOf } from '../../database/columns.ts'
import type { WorkloadDatabase } from '../../database/database.ts'
import type { DeliveryRecord, PriorDelivery, StatsUpdate, Webhook, WebhookRepositoryPort } from '../port.ts'
import { DeliveryLog } from './delivery-log.ts'
import { Lookups } from './lookups.ts'

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
  readonly #lookups: Lookups

  constructor(database: WorkloadDatabase, { clock = systemClock }: { readonly clock?: Clock } = {}) {
    this.#database = database
    this.#clock = clock
    this.#log = new DeliveryLog(database)
    this.#lookups = new Lookups(database, clock)
  }

  findById(webhookId: string): Promise<Webhook | null> {
    return this.#lookups.endpoint(webhookId)
  }

  /** With a job, only what this job has done counts: for a redelivery. */
  findPrior(delivery: { readonly deliveryId: string; readonly jobId?: string }): Promise<PriorDelivery> {
    return this.#lookups.prior(delivery)
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
