import { type OptionNames, omitUndefined, refuseUnknown } from '../../../src/job/known-options.ts'
import { checkListLimit } from '../../../src/job/list-limit.ts'
import { toIso } from '../../../src/time/iso.ts'
import { booleanOf, dateOf, maybe, numberOf, textOf } from '../../database/columns.ts'
import type { Row, Value, WorkloadDatabase } from '../../database/database.ts'

/** One attempt of a delivery. */
export interface WebhookDelivery {
  readonly deliveryId: string
  readonly jobId: string
  readonly webhookId: string
  readonly event: string | null
  readonly attempt: number
  readonly status: 'success' | 'failed'
  readonly statusCode: number | null
  readonly latencyMs: number
  readonly responseBody: string | null
  readonly errorMessage: string | null
  /** The job was not tried again after it. */
  readonly isFinal: boolean
  readonly at: Date
}

export interface DeliveryFilter {
  readonly webhookId?: string
  readonly deliveryId?: string
  readonly status?: 'success' | 'failed'
  /** Default: 100. */
  readonly limit?: number
}

const FILTER_NAMES: OptionNames<DeliveryFilter> = { webhookId: true, deliveryId: true, status: true, limit: true }
const COLUMNS = `delivery_id, job_id, webhook_id, event, attempt, status, status_code, latency_ms, response_body,
  error_message, is_final, at`
const LIMIT_DEFAULT = 100

/** Attempts, the latest first. */
export async function listDeliveries(
  database: WorkloadDatabase,
  filter: DeliveryFilter = {},
): Promise<readonly WebhookDelivery[]> {
  refuseUnknown(filter, FILTER_NAMES, 'deliveries')
  const { limit = LIMIT_DEFAULT, webhookId, deliveryId, status } = filter
  checkListLimit(limit)
  const conditions = Object.entries(omitUndefined({ webhook_id: webhookId, delivery_id: deliveryId, status }))
  const where = conditions.map(([column], at) => `${column} = $${at + 1}`).join(' AND ') || 'true'
  const values: readonly Value[] = [...conditions.map(([, value]) => String(value)), limit]
  const sql = `SELECT ${COLUMNS} FROM {webhook_deliveries} WHERE ${where} ORDER BY at DESC, attempt DESC LIMIT $${values.length}`
  return (await database.read(sql, values)).map(deliveryOf)
}

function deliveryOf(row: Row): WebhookDelivery {
  return {
    deliveryId: textOf(row, 'delivery_id'),
    jobId: textOf(row, 'job_id'),
    webhookId: textOf(row, 'webhook_id'),
    event: maybe(textOf, row, 'event'),
    attempt: numberOf(row, 'attempt'),
    status: textOf(row, 'status') === 'success' ? 'success' : 'failed',
    statusCode: maybe(numberOf, row, 'status_code'),
    latencyMs: numberOf(row, 'latency_ms'),
    responseBody: maybe(textOf, row, 'response_body'),
    errorMessage: maybe(textOf, row, 'error_message'),
    isFinal: booleanOf(row, 'is_final'),
    at: dateOf(row, 'at'),
  }
}

/** Short statements, so that other writers get their turn. */
const REMOVED_AT_ONCE = 1_000

const REMOVE_DELIVERIES = `DELETE FROM {webhook_deliveries} WHERE (delivery_id, job_id, token) IN (
  SELECT delivery_id, job_id, token FROM {webhook_deliveries} WHERE at < $1 ORDER BY at LIMIT $2
) RETURNING 1 AS one`
const REMOVE_PUBLICATIONS = `DELETE FROM {webhook_publications} WHERE (tenant, publication_key) IN (
  SELECT tenant, publication_key FROM {webhook_publications} WHERE at < $1 ORDER BY at LIMIT $2
) RETURNING 1 AS one`

export interface Removed {
  readonly deliveries: number
  readonly publications: number
}

/** Removes records of deliveries, and keys of published events, that are older than this time. */
export async function removeOlder(database: WorkloadDatabase, beforeMs: number): Promise<Removed> {
  const removeAll = async (sql: string): Promise<number> => {
    for (let removed = 0; ; ) {
      const [rows = []] = await database.write([{ sql, values: [toIso(beforeMs), REMOVED_AT_ONCE] }])
      removed += rows.length
      if (rows.length < REMOVED_AT_ONCE) return removed
    }
  }
  return { deliveries: await removeAll(REMOVE_DELIVERIES), publications: await removeAll(REMOVE_PUBLICATIONS) }
}
