import type { Connection } from './database.ts'

/**
 * The table of the conversation pipeline with its indexes and trigger, by their exact names, and what Millrace adds.
 * A table that the pipeline made before Millrace came is completed, and its jobs are kept.
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
  // Not claimable while above 0: an older job of the same latest key is in flight, or jobs that come first are not done.
  { name: 'waiting_for', definition: 'INTEGER NOT NULL DEFAULT 0' },
  { name: 'latest_key', definition: 'TEXT' },
  { name: 'latest_seq', definition: 'INTEGER' },
  // The jobs that come first, as JSON.
  { name: 'predecessors', definition: 'TEXT' },
  { name: 'tenant', definition: 'TEXT' },
  { name: 'options', definition: 'TEXT' },
  { name: 'payload_version', definition: 'INTEGER NOT NULL DEFAULT 1' },
  { name: 'progress', definition: 'TEXT' },
  { name: 'duration_ms', definition: 'INTEGER' },
  // Whose lease it was: lease_owner is cleared with the lease.
  { name: 'completed_by', definition: 'TEXT' },
  { name: 'error_record', definition: 'TEXT' },
  // The idempotency key a finished job had: the key itself is free again.
  { name: 'released_key', definition: 'TEXT' },
  // How often it was put back from the dead letters.
  { name: 'replays', definition: 'INTEGER NOT NULL DEFAULT 0' },
  // Why a dead_letter row is no dead letter.
  { name: 'ended', definition: `TEXT CHECK (ended IN ('cancelled', 'superseded', 'discarded'))` },
]

export const INDEXES_AND_TABLES = `
CREATE INDEX IF NOT EXISTS idx_job_queue_dequeue ON job_queue(status, priority, scheduled_at) WHERE status = 'queued';
CREATE INDEX IF NOT EXISTS idx_job_queue_lease_expiry ON job_queue(lease_until) WHERE status = 'in_progress';
CREATE INDEX IF NOT EXISTS idx_job_queue_type ON job_queue(type, status);
-- The UNIQUE column has an index of its own already (X078); without the jobs that have no key this one costs them nothing.
CREATE INDEX IF NOT EXISTS idx_job_queue_idempotency ON job_queue(idempotency_key) WHERE idempotency_key IS NOT NULL;

-- One probe per type and priority on this index is what keeps a claim's cost flat.
CREATE INDEX IF NOT EXISTS idx_job_queue_claim ON job_queue(type, priority, scheduled_at)
  WHERE status = 'queued' AND waiting_for = 0;
CREATE INDEX IF NOT EXISTS idx_job_queue_latest ON job_queue(type, latest_key, status) WHERE latest_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_job_queue_dead ON job_queue(completed_at, id, type)
  WHERE status = 'dead_letter' AND ended IS NULL;

-- The column list ends the recursion that a trigger on its own table would start (X075). Our own statements write
-- updated_at themselves and change the token, so the trigger works for updates made by hand only (X074).
DROP TRIGGER IF EXISTS job_queue_updated_at;
CREATE TRIGGER job_queue_updated_at
AFTER UPDATE OF id, type, status, priority, scheduled_at, lease_owner, lease_until, payload, idempotency_key, attempts,
  max_retries, error, created_at, started_at, completed_at, result ON job_queue
FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.lease_token IS OLD.lease_token
BEGIN
  UPDATE job_queue SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE rowid = NEW.rowid;
END;

-- What happened to a job and cannot be read off its row: failures, releases, expiries, acts of operators.
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

-- The highest sequence number seen per latest key: an older version never runs after a newer one.
CREATE TABLE IF NOT EXISTS job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;

-- Which job comes after which, until the later one is over for good; held while the earlier one holds it back.
CREATE TABLE IF NOT EXISTS job_after (
  after_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  if_dead TEXT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (after_id, job_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idx_job_after_job ON job_after(job_id, held);

-- Every act at the dead-letter desk. It outlives the jobs, and nobody rewrites it.
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

-- What runs on the clock. The body is the keeper's; a new revision with every change is the fence.
CREATE TABLE IF NOT EXISTS millrace_schedules (
  name TEXT PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at_ms INTEGER,
  body TEXT NOT NULL
) WITHOUT ROWID;

-- Who holds an office, such as that of the keeper, and until when.
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

/** Who is at work, which types are held back, and what an audit entry is about where that is no job. */
export const PRESENCE_AND_PAUSES = `
-- What each worker last said of each of its types, as JSON. It holds until until_ms and is kept for a day longer.
CREATE TABLE IF NOT EXISTS millrace_presence (
  worker TEXT NOT NULL,
  type TEXT NOT NULL,
  beat TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY (worker, type)
) WITHOUT ROWID;

-- Types of which nothing is started.
CREATE TABLE IF NOT EXISTS millrace_pauses (
  type TEXT PRIMARY KEY,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE job_audit ADD COLUMN subject TEXT;
`

/** Jobs that wait for a keeper to hand them on to another engine. */
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
 * By which clock the times in the file were written. All processes of a machine share its monotonic clock; offset_ms is
 * what the wall clock is ahead of it, so that whoever finds another difference knows that the clock was set.
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

/** Since when no job of a latest key is there that may still run; null while there is one, or nobody has looked. */
export const LATEST_IDLE = `
ALTER TABLE job_latest ADD COLUMN idle_since TEXT;
`

interface Migration {
  readonly version: number
  readonly name: string
  /** What it runs against the schema as it is, in order. */
  statements(connection: Connection): readonly string[]
}

function hasColumn({ handle }: Connection, table: 'job_queue' | 'job_latest', name: string): boolean {
  const columns = handle.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]
  return columns.some((column) => column.name === name)
}

/** In order; a migration is never edited once released, only followed by another. */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'job-queue',
    statements(connection) {
      const missing = ADDED_COLUMNS.filter(({ name }) => !hasColumn(connection, 'job_queue', name))
      const additions = missing.map(({ name, definition }) => `ALTER TABLE job_queue ADD COLUMN ${name} ${definition};`)
      return [CANONICAL_TABLE, ...additions, INDEXES_AND_TABLES]
    },
  },
  { version: 2, name: 'presence', statements: () => [PRESENCE_AND_PAUSES] },
  { version: 3, name: 'outbox', statements: () => [OUTBOX] },
  { version: 4, name: 'clock', statements: () => [CLOCK] },
  {
    version: 5,
    name: 'latest-keys',
    statements: (connection) => (hasColumn(connection, 'job_latest', 'idle_since') ? [] : [LATEST_IDLE]),
  },
]

export const SCHEMA_VERSION: number = MIGRATIONS.at(-1)?.version ?? 0
