import { Batcher } from '../../../src/engine/batcher.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { booleanOf, maybe, numberOf, textOf } from '../../database/columns.ts'
import type { Dialect, Row, WorkloadDatabase } from '../../database/database.ts'
import { isStorable } from '../../database/text.ts'
import type { PriorDelivery, Webhook } from '../port.ts'
import { secretsOf } from './endpoint.ts'

/** An endpoint, or the records of a delivery. */
type Lookup = { readonly webhookId: string } | { readonly deliveryId: string }

/** The lookups of the JSON array `$1`, numbered in its order. */
const GIVEN: Readonly<Record<Dialect['name'], string>> = {
  sqlite: `SELECT key AS nth, json_extract(value, '$.webhookId') AS webhook_id,
  json_extract(value, '$.deliveryId') AS delivery_id FROM json_each($1)`,
  postgres: `SELECT nth - 1 AS nth, value->>'webhookId' AS webhook_id, value->>'deliveryId' AS delivery_id
  FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS item (value, nth)`,
}

/** One row for each lookup, more for a delivery with several records. */
function find({ name }: Dialect): string {
  return `WITH given AS (${GIVEN[name]})
SELECT given.nth, e.id, e.url, e.is_enabled, e.disabled_reason, e.max_failures, e.secret, e.previous_secret,
  e.previous_until, d.job_id, d.status, d.status_code, d.latency_ms
FROM given LEFT JOIN {webhook_endpoints} e ON e.id = given.webhook_id
LEFT JOIN {webhook_deliveries} d ON d.delivery_id = given.delivery_id`
}

/** What the worker looks up before it sends. The lookups of all jobs that start at the same time are one statement. */
export class Lookups {
  readonly #clock: Clock
  readonly #rows: Batcher<Lookup, readonly Row[]>

  constructor(database: WorkloadDatabase, clock: Clock) {
    this.#clock = clock
    const sql = find(database.dialect)
    this.#rows = new Batcher(
      async (lookups) => {
        const rows = await database.read(sql, [JSON.stringify(lookups)])
        const byNumber = Map.groupBy(rows, (row) => numberOf(row, 'nth'))
        return lookups.map((_, nth) => byNumber.get(nth) ?? [])
      },
      { flightsMax: 2, itemsMax: 400, isWorthRepeating: () => false },
    )
  }

  async endpoint(webhookId: string): Promise<Webhook | null> {
    // In no row, and it would fail the lookups of others.
    if (!isStorable(webhookId)) return null
    const [[row] = []] = await this.#rows.add([{ webhookId }])
    if (row === undefined || row.id === null) return null
    return {
      url: textOf(row, 'url'),
      isEnabled: booleanOf(row, 'is_enabled'),
      disabledReason: maybe(textOf, row, 'disabled_reason'),
      maxFailures: numberOf(row, 'max_failures'),
      secrets: secretsOf(row, this.#clock.nowMs()),
    }
  }

  /** With `jobId`, only what this job has done counts. */
  async prior({ deliveryId, jobId }: { readonly deliveryId: string; readonly jobId?: string }): Promise<PriorDelivery> {
    const [rows = []] = await this.#rows.add([{ deliveryId }])
    const records = rows.filter((row) => row.status !== null && (jobId === undefined || row.job_id === jobId))
    const success = records.find((row) => row.status === 'success')
    if (success === undefined) return { success: null, hasFailed: records.length > 0 }
    const facts = { statusCode: numberOf(success, 'status_code'), latencyMs: numberOf(success, 'latency_ms') }
    return { success: facts, hasFailed: false }
  }
}
