import type { WorkloadSchema } from '../../database/schema.ts'

/** The types that differ between the two databases. */
const TYPES = {
  sqlite: { flag: 'INTEGER', time: 'TEXT', count: 'INTEGER', mean: 'REAL', json: 'TEXT' },
  postgres: { flag: 'BOOLEAN', time: 'TIMESTAMPTZ', count: 'BIGINT', mean: 'DOUBLE PRECISION', json: 'JSONB' },
} as const

/**
 * The key of a delivery's row is one start of one job, so that a record that is written twice is one row. The attempt
 * alone would not do: it begins at 1 again when a dead letter is replayed.
 */
function tables({ flag, time, count, mean, json }: (typeof TYPES)[keyof typeof TYPES]): string {
  return `
CREATE TABLE {webhook_endpoints} (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_until ${time},
  is_enabled ${flag} NOT NULL,
  enabled_at ${time} NOT NULL,
  disabled_reason TEXT,
  disabled_at ${time},
  max_failures INTEGER NOT NULL,
  events ${json} NOT NULL,
  org_id TEXT,
  workspace_id TEXT,
  description TEXT,
  success_count ${count} NOT NULL DEFAULT 0,
  failure_count ${count} NOT NULL DEFAULT 0,
  avg_latency_ms ${mean} NOT NULL DEFAULT 0,
  last_delivered_at ${time},
  created_at ${time} NOT NULL,
  updated_at ${time} NOT NULL
);
CREATE INDEX webhook_endpoints_tenant ON {webhook_endpoints} (org_id, workspace_id);
CREATE TABLE {webhook_deliveries} (
  delivery_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  token TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  event TEXT,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('success', 'failed')),
  status_code INTEGER,
  latency_ms INTEGER NOT NULL,
  response_body TEXT,
  error_message TEXT,
  is_final ${flag} NOT NULL,
  at ${time} NOT NULL,
  PRIMARY KEY (delivery_id, job_id, token)
);
CREATE INDEX webhook_deliveries_webhook ON {webhook_deliveries} (webhook_id, at);
CREATE INDEX webhook_deliveries_failed ON {webhook_deliveries} (webhook_id, at) WHERE is_final;
CREATE INDEX webhook_deliveries_at ON {webhook_deliveries} (at);
CREATE TABLE {webhook_publications} (
  tenant TEXT NOT NULL,
  publication_key TEXT NOT NULL,
  event TEXT NOT NULL,
  deliveries ${json} NOT NULL,
  at ${time} NOT NULL,
  PRIMARY KEY (tenant, publication_key)
);
CREATE INDEX webhook_publications_at ON {webhook_publications} (at);`
}

/** The tables of endpoints, of deliveries, and of events that were published with a key. */
export const webhooksSchema: WorkloadSchema = {
  name: 'webhooks',
  migrations: [{ version: 1, sql: { sqlite: tables(TYPES.sqlite), postgres: tables(TYPES.postgres) } }],
}
