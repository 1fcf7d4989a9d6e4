import { lastOf, type Versioned } from '../sql/schema-version.ts'
import type { Connection } from './database.ts'
import { JOB_LOGS } from './job-logs.ts'
import { SEARCHING } from './tags.ts'

/**
 * The `job_queue` table of the conversation pipeline with its indexes and trigger, by their exact names. A table that
 * exists already is completed, and its jobs are kept.
 */
export const CANONICAL_TABLE = `
CREATE TABLE IF NOT EXISTS job_queue (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'in_progress', 'completed', 'failed', 'dead_letter')),
  priority INTEGER NOT NULL DEFAULT 5 CHECK (priority >= 1 AND priority <= 10),
  scheduled_at TEXT NOT NULL,
  lease_owner TEXT,
  lease_until TEXT,
  payload TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  attempts INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL DEFAULT 3,
  error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  started_at TEXT,
  completed_at TEXT,
  result TEXT
);
`

/** Each has a default, so a plain INSERT of the canonical columns by another program is a valid job. */
export const ADDED_COLUMNS: readonly { readonly name: string; readonly definition: string }[] = [
  // The fence: set by every claim, cleared by every settle.
  { name: 'lease_token', definition: 'TEXT' },
  // Not claimable while above 0: an older job of the same latest key runs, or predecessors are not done.
  { name: 'waiting_for', definition: 'INTEGER NOT NULL DEFAULT 0' },
  { name: 'latest_key', definition: 'TEXT' },
  { name: 'latest_seq', definition: 'INTEGER' },
  // The predecessors, as JSON.
  { name: 'predecessors', definition: 'TEXT' },
  { name: 'tenant', definition: 'TEXT' },
  { name: 'options', definition: 'TEXT' },
  { name: 'payload_version', definition: 'INTEGER NOT NULL DEFAULT 1' },
  { name: 'progress', definition: 'TEXT' },
  { name: 'duration_ms', definition: 'INTEGER' },
  // The last holder: lease_owner is cleared with the lease.
  { name: 'completed_by', definition: 'TEXT' },
  { name: 'error_record', definition: 'TEXT' },
  // The key of a finished job, for a replay. The key itself is free again.
  { name: 'released_key', definition: 'TEXT' },
  // How often it was replayed.
  { name: 'replays', definition: 'INTEGER NOT NULL DEFAULT 0' },
  // Set for a dead_letter row that is no dead letter.
  { name: 'ended', definition: `TEXT CHECK (ended IN ('cancelled', 'superseded', 'discarded'))` },
]

export const INDEXES_AND_TABLES = `
CREATE INDEX IF NOT EXISTS idx_job_queue_dequeue ON job_queue(status, priority, scheduled_at) WHERE status = 'queued';
CREATE INDEX IF NOT EXISTS idx_job_queue_lease_expiry ON job_queue(lease_until) WHERE status = 'in_progress';
CREATE INDEX IF NOT EXISTS idx_job_queue_type ON job_queue(type, status);
-- The UNIQUE column has an index already. This one is partial, so jobs without a key do not pay for it.
CREATE INDEX IF NOT EXISTS idx_job_queue_idempotency ON job_queue(idempotency_key) WHERE idempotency_key IS NOT NULL;

-- A claim probes this index once per type and priority, so its cost stays flat.
CREATE INDEX IF NOT EXISTS idx_job_queue_claim ON job_queue(type, priority, scheduled_at)
  WHERE status = 'queued' AND waiting_for = 0;
CREATE INDEX IF NOT EXISTS idx_job_queue_latest ON job_queue(type, latest_key, status) WHERE latest_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_job_queue_dead ON job_queue(completed_at, id, type)
  WHERE status = 'dead_letter' AND ended IS NULL;

-- The column list keeps the trigger from firing itself. Our own statements write updated_at and change the token, so the
-- trigger acts on updates made by hand only.
DROP TRIGGER IF EXISTS job_queue_updated_at;
CREATE TRIGGER job_queue_updated_at
AFTER UPDATE OF id, type, status, priority, scheduled_at, lease_owner, lease_until, payload, idempotency_key, attempts,
  max_retries, error, created_at, started_at, completed_at, result ON job_queue
FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.lease_token IS OLD.lease_token
BEGIN
  UPDATE job_queue SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE rowid = NEW.rowid;
END;

-- Events that the row of a job does not show: failures, releases, expiries, acts of operators.
CREATE TABLE IF NOT EXISTS job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
CREATE INDEX IF NOT EXISTS idx_job_events_job ON job_events(job_id, seq);

-- The highest sequence number of each latest key: an older version never runs after a newer one.
CREATE TABLE IF NOT EXISTS job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;

-- Which job comes after which, until the later one is over for good. held: the earlier job holds it back.
CREATE TABLE IF NOT EXISTS job_after (
  after_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  if_dead TEXT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (after_id, job_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idx_job_after_job ON job_after(job_id, held);

-- Every act on a dead letter, and other acts of operators. Append-only; entries outlive their jobs.
CREATE TABLE IF NOT EXISTS job_audit (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  action TEXT NOT NULL,
  job_id TEXT NOT NULL,
  type TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT
);
CREATE INDEX IF NOT EXISTS idx_job_audit_job ON job_audit(job_id, seq);
CREATE TRIGGER IF NOT EXISTS job_audit_kept BEFORE DELETE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
CREATE TRIGGER IF NOT EXISTS job_audit_unchanged BEFORE UPDATE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;

-- Schedules. The keeper defines the body. Every change writes a new revision, which is the fence.
CREATE TABLE IF NOT EXISTS millrace_schedules (
  name TEXT PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at_ms INTEGER,
  body TEXT NOT NULL
) WITHOUT ROWID;

-- Who leads, for example as the keeper, and until when.
CREATE TABLE IF NOT EXISTS millrace_leaders (
  office TEXT PRIMARY KEY,
  holder TEXT,
  number INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Recent claims of rate-limited types, one row per claim call.
CREATE TABLE IF NOT EXISTS job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_job_starts_type ON job_starts(type, at_ms);
`

/** Presence of workers, paused types, and the subject of audit entries that are not about a job. */
export const PRESENCE_AND_PAUSES = `
-- The last heartbeat of each worker and type, as JSON. Valid until until_ms, kept for another day.
CREATE TABLE IF NOT EXISTS millrace_presence (
  worker TEXT NOT NULL,
  type TEXT NOT NULL,
  beat TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY (worker, type)
) WITHOUT ROWID;

-- Types that start no jobs.
CREATE TABLE IF NOT EXISTS millrace_pauses (
  type TEXT PRIMARY KEY,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE job_audit ADD COLUMN subject TEXT;
`

/** Jobs that a keeper forwards to another engine. */
export const OUTBOX = `
CREATE TABLE IF NOT EXISTS millrace_outbox (
  seq INTEGER PRIMARY KEY,
  outbox TEXT NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  added_at_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_millrace_outbox_order ON millrace_outbox(outbox, seq);
`

/**
 * The clock by which the times in the file were written. All processes of a machine share its monotonic clock. offset_ms
 * is the wall clock minus the monotonic one: a process that finds another difference knows that the clock was set.
 */
export const CLOCK = `
CREATE TABLE IF NOT EXISTS millrace_clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  timeline TEXT NOT NULL,
  offset_ms REAL NOT NULL,
  stepped_at_ms INTEGER,
  step_ms INTEGER
);
`

/** Since when no job of a latest key may still run; null while one may, or before the first check. */
export const LATEST_IDLE = `ALTER TABLE job_latest ADD COLUMN idle_since TEXT;`

/**
 * Schedules, leaders, workers and pauses become records of one table. A schedule that is no JSON stays as it is, so that
 * the keeper reports it.
 */
export const RECORDS = `
CREATE TABLE IF NOT EXISTS millrace_records (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  revision TEXT NOT NULL,
  body TEXT NOT NULL,
  saved_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO millrace_records (kind, name, revision, body, saved_at_ms, expires_at_ms)
SELECT 'schedule', name, revision,
  CASE WHEN json_valid(body) THEN json_set(body, '$.nextAtMs', next_at_ms) ELSE body END, 0, NULL FROM millrace_schedules
UNION ALL SELECT 'pause', type, 'migrated', json_object('who', who, 'reason', reason), since_ms, NULL FROM millrace_pauses
UNION ALL SELECT 'leader', office, 'migrated', json_object('holder', holder, 'number', number, 'leaseMs', lease_ms),
  until_ms - lease_ms, until_ms FROM millrace_leaders
UNION ALL SELECT 'worker', worker || char(10) || type, '', beat, at_ms, until_ms FROM millrace_presence;
DROP TABLE millrace_schedules;
DROP TABLE millrace_pauses;
DROP TABLE millrace_leaders;
DROP TABLE millrace_presence;
`

/** Dead letters and jobs that were ended share a status. Each kind is listed without passing over the others. */
export const ENDED_JOBS = `
CREATE INDEX IF NOT EXISTS idx_job_queue_ended ON job_queue(type, ended) WHERE status = 'dead_letter';
`

/** The audit stays append-only, but what its entries say about a job can be erased. */
export const ERASING = `
DROP TRIGGER IF EXISTS job_audit_unchanged;
CREATE TRIGGER job_audit_unchanged BEFORE UPDATE ON job_audit
WHEN NEW.seq IS NOT OLD.seq OR NEW.at IS NOT OLD.at OR NEW.who IS NOT OLD.who OR NEW.reason IS NOT OLD.reason
  OR NEW.action IS NOT OLD.action OR NEW.job_id IS NOT OLD.job_id OR NEW.type IS NOT OLD.type
  OR NEW.subject IS NOT OLD.subject OR NEW.before IS NOT '{"erased":true}'
  OR (NEW.after IS NULL) IS NOT (OLD.after IS NULL) OR coalesce(NEW.after, '{"erased":true}') IS NOT '{"erased":true}'
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
`

export interface Migration extends Versioned {
  readonly name: string
  /** The SQL to run against the current schema, in order. */
  statements(connection: Connection): readonly string[]
}

function hasColumn({ handle }: Connection, table: 'job_queue' | 'job_latest', name: string): boolean {
  const columns = handle.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]
  return columns.some((column) => column.name === name)
}

function jobQueue(connection: Connection): readonly string[] {
  const missing = ADDED_COLUMNS.filter(({ name }) => !hasColumn(connection, 'job_queue', name))
  const additions = missing.map(({ name, definition }) => `ALTER TABLE job_queue ADD COLUMN ${name} ${definition};`)
  return [CANONICAL_TABLE, ...additions, INDEXES_AND_TABLES]
}

/** The first packages wrote version 1 before it had the audit, dependencies and schedules, and with two other indexes. */
function completed(connection: Connection): readonly string[] {
  const has = (table: string): boolean => connection.handle.prepare(HAS_TABLE).get(table) !== undefined
  return has('job_latest') && !has('job_after') ? [EARLY_INDEXES, ...jobQueue(connection)] : []
}

const HAS_TABLE = `SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ?`
const EARLY_INDEXES = `
DROP INDEX IF EXISTS idx_job_queue_dead;
DROP INDEX IF EXISTS idx_job_queue_idempotency;
`

/** In order. A released migration is never edited, only followed by another. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'job-queue', statements: jobQueue },
  { version: 2, name: 'presence', statements: (connection) => [...completed(connection), PRESENCE_AND_PAUSES] },
  { version: 3, name: 'outbox', statements: () => [OUTBOX] },
  { version: 4, name: 'clock', statements: () => [CLOCK] },
  {
    version: 5,
    name: 'latest-keys',
    statements: (connection) => (hasColumn(connection, 'job_latest', 'idle_since') ? [] : [LATEST_IDLE]),
  },
  { version: 6, name: 'records', statements: () => [RECORDS] },
  { version: 7, name: 'ended-jobs', statements: () => [ENDED_JOBS] },
  { version: 8, name: 'erasing', statements: () => [ERASING] },
  { version: 9, name: 'job-logs', needs: 8, statements: () => [JOB_LOGS] },
  { version: 10, name: 'searching', needs: 8, statements: () => [SEARCHING] },
]

export const SCHEMA_VERSION: number = lastOf(MIGRATIONS)
