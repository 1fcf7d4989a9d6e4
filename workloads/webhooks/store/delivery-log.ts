/** Records of deliveries and the stats of their endpoints, many in one write. */
import { Batcher } from '../../../src/engine/batcher.ts'
import { isConnectionFault } from '../../../src/engines/postgres/faults.ts'
import { fieldOf } from '../../../src/errors.ts'
import { toIso } from '../../../src/time/iso.ts'
import type { Dialect, WorkloadDatabase } from '../../database/database.ts'
import type { DeliveryRecord } from '../port.ts'

type ColumnType = 'text' | 'number' | 'flag' | 'time'

const COLUMNS: Readonly<Record<string, ColumnType>> = {
  delivery_id: 'text',
  job_id: 'text',
  token: 'text',
  webhook_id: 'text',
  event: 'text',
  attempt: 'number',
  status: 'text',
  status_code: 'number',
  latency_ms: 'number',
  response_body: 'text',
  error_message: 'text',
  is_final: 'flag',
  at: 'time',
}

const POSTGRES_TYPES: Readonly<Record<ColumnType, string>> = {
  ...{ text: 'text', number: 'bigint', flag: 'boolean', time: 'timestamptz' },
}

/**
 * The commit does not wait for the disk. The job is settled next, in the same log, and that commit does: so a record is
 * lost behind a completed job only if the server crashes between the two, and a delivery costs one wait for the disk instead of two.
 */
const LAZY_COMMIT = `set_config('synchronous_commit', 'off', true)`

/** The records of the JSON array `$1` as a table `r`. */
function records(dialect: Dialect): string {
  const columns = Object.entries(COLUMNS).map(([name, type]) => {
    switch (dialect.name) {
      case 'sqlite':
        return `json_extract(value, '$.${name}') AS ${name}`
      case 'postgres':
        return `(value->>'${name}')::${POSTGRES_TYPES[type]} AS ${name}`
      default:
        return dialect.name satisfies never
    }
  })
  const source = dialect.name === 'sqlite' ? 'json_each($1)' : `jsonb_array_elements($1::jsonb), ${LAZY_COMMIT}`
  return `r AS (SELECT ${columns.join(', ')} FROM ${source})`
}

/** What the records of `from` add to the stats of their endpoints. */
function sums(from: string): string {
  return `SELECT webhook_id,
  sum(CASE WHEN status = 'success' THEN 1 ELSE 0 END) AS successes,
  sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failures,
  sum(CASE WHEN status = 'success' THEN latency_ms ELSE 0 END) AS latency_ms,
  max(CASE WHEN status = 'success' THEN at END) AS delivered_at
FROM ${from} GROUP BY webhook_id`
}

const ADD_SUMS = `UPDATE {webhook_endpoints} SET
  success_count = success_count + s.successes,
  failure_count = failure_count + s.failures,
  avg_latency_ms = CASE WHEN s.successes = 0 THEN avg_latency_ms
    ELSE (avg_latency_ms * success_count + s.latency_ms) / (success_count + s.successes) END,
  last_delivered_at = coalesce(s.delivered_at, last_delivered_at)
FROM s WHERE {webhook_endpoints}.id = s.webhook_id`

const NAMES = Object.keys(COLUMNS).join(', ')

// Without the WHERE, SQLite would parse the ON of ON CONFLICT as a join condition.
const INSERT = `INSERT INTO {webhook_deliveries} (${NAMES})
SELECT ${NAMES} FROM r WHERE true ON CONFLICT (delivery_id, job_id, token) DO NOTHING`

const NOT_STORED = `r WHERE NOT EXISTS (
  SELECT 1 FROM {webhook_deliveries} d
  WHERE d.delivery_id = r.delivery_id AND d.job_id = r.job_id AND d.token = r.token
)`

/** Stores records and counts those that were not stored before. Postgres does it in one round trip. */
function storeAndCount(dialect: Dialect): readonly string[] {
  const given = records(dialect)
  switch (dialect.name) {
    case 'sqlite':
      // Before the insert, since afterwards all are stored.
      return [`WITH ${given}, s AS (${sums(NOT_STORED)}) ${ADD_SUMS}`, `WITH ${given} ${INSERT}`]
    case 'postgres':
      return [
        `WITH ${given}, stored AS (${INSERT} RETURNING webhook_id, status, latency_ms, at), s AS (${sums('stored')}) ${ADD_SUMS}`,
      ]
    default:
      return dialect.name satisfies never
  }
}

export interface StampedDelivery {
  readonly delivery: DeliveryRecord
  readonly nowMs: number
}

function toRow({ delivery, nowMs }: StampedDelivery, dialect: Dialect): Readonly<Record<string, unknown>> {
  const { jobId, deliveryId = jobId, attempt = 1, token = String(attempt), isFinal = false } = delivery
  return {
    ...{ delivery_id: deliveryId, job_id: jobId, token, attempt, webhook_id: delivery.webhookId },
    ...{ status: delivery.status, status_code: delivery.statusCode ?? null, latency_ms: delivery.latencyMs },
    ...{ response_body: delivery.responseBody ?? null, error_message: delivery.errorMessage ?? null },
    ...{ event: delivery.event ?? null, is_final: dialect.name === 'sqlite' ? Number(isFinal) : isFinal },
    at: toIso(nowMs),
  }
}

/** A record twice in one write would be counted twice. */
function distinct(rows: readonly Readonly<Record<string, unknown>>[]) {
  return [...new Map(rows.map((row) => [JSON.stringify([row.delivery_id, row.job_id, row.token]), row])).values()]
}

const BATCH_MAX = 500

/**
 * Stores records and counts them in the stats of their endpoints. Those made at the same time share one transaction. When
 * one cannot be stored, the others are.
 */
export class DeliveryLog {
  readonly #database: WorkloadDatabase
  readonly #batcher: Batcher<StampedDelivery, void>

  constructor(database: WorkloadDatabase) {
    this.#database = database
    const statements = storeAndCount(database.dialect)
    this.#batcher = new Batcher(
      async (items) => {
        const values = [this.#rowsOf(items)]
        await database.write(
          statements.map((sql) => ({ sql, values })),
          { durability: 'volatile', isRepeatable: true },
        )
        return items.map(() => undefined)
      },
      {
        ...{ flightsMax: 1, itemsMax: BATCH_MAX, takesWholeTurn: true },
        // One that cannot be stored fails alone. Repeating is harmless: what is there is not counted again. A server that was
        // away for all the tries of the write is away for each record too.
        isWorthRepeating: (error) => !isConnectionFault(fieldOf(error, 'cause')),
      },
    )
  }

  async add(item: StampedDelivery): Promise<void> {
    await this.#batcher.add([item])
  }

  /** Stores one without counting it. */
  async addUncounted(item: StampedDelivery): Promise<void> {
    const sql = `WITH ${records(this.#database.dialect)} ${INSERT}`
    await this.#database.write([{ sql, values: [this.#rowsOf([item])] }])
  }

  /** Resolves when everything is stored. */
  idle(): Promise<void> {
    return this.#batcher.idle()
  }

  #rowsOf(items: readonly StampedDelivery[]): string {
    return JSON.stringify(distinct(items.map((item) => toRow(item, this.#database.dialect))))
  }
}
