/**
 * The table `jobs` with the columns, defaults and index of the job tables, and what Millrace adds. A table that exists
 * already is completed: its own columns, rows and indexes stay. Every statement may be repeated.
 *
 * For programs that change `jobs` beside the engine, such as the reaper and functions of the job tables:
 * - status is one of queued, processing, completed, failed. A failed job is a dead letter unless `ended` says otherwise.
 * - a claim counts in `attempt_count`, clears `next_earliest_run_at` and sets `locked_by`, `lease_expires_at`,
 *   `last_heartbeat_at` and `started_at`.
 * - `lease_token` is the engine's fence. It begins with the holder and is valid only while `locked_by` is that holder, so
 *   changing `locked_by` fences out the previous holder. (A trigger that cleared it would make every update lock its row
 *   twice: measured, a sixth of what a job costs the server.)
 * - a job is due at greatest(run_at, next_earliest_run_at); greatest ignores a null.
 * - an event is a row of `job_events`: data is {type, table, at, attempt, worker, details}.
 */
import { literal, type Names, quote } from './names.ts'

interface Column {
  readonly name: string
  readonly definition: string
}

/** The columns that the reaper of the job tables needs in any table. */
export const LEASE_COLUMNS: readonly Column[] = [
  { name: 'locked_by', definition: 'TEXT NULL' },
  { name: 'lease_expires_at', definition: 'TIMESTAMPTZ NULL' },
  { name: 'last_heartbeat_at', definition: 'TIMESTAMPTZ NULL' },
  { name: 'attempt_count', definition: 'INT NOT NULL DEFAULT 0' },
  { name: 'max_attempts', definition: 'INT NOT NULL DEFAULT 3' },
  { name: 'fail_code', definition: 'TEXT NULL' },
  { name: 'fail_reason', definition: 'TEXT NULL' },
  { name: 'stage', definition: 'TEXT NULL' },
  { name: 'next_earliest_run_at', definition: 'TIMESTAMPTZ NULL' },
  { name: 'expected_duration_ms', definition: 'INT NULL' },
]

/** Each is nullable or has a constant default, so that a big table is not rewritten and a plain INSERT is a valid job. */
export const ADDED_COLUMNS: readonly Column[] = [
  { name: 'status', definition: `TEXT NOT NULL DEFAULT 'queued'` },
  { name: 'type', definition: 'TEXT NULL' },
  // Text, so that it stays as the producer wrote it, and a payload that is not JSON becomes a dead letter, not a fault.
  { name: 'payload', definition: 'TEXT NULL' },
  { name: 'payload_version', definition: 'INT NOT NULL DEFAULT 1' },
  { name: 'priority', definition: 'INT NOT NULL DEFAULT 5 CHECK (priority BETWEEN 1 AND 10)' },
  { name: 'run_at', definition: 'TIMESTAMPTZ NOT NULL DEFAULT now()' },
  { name: 'created_at', definition: 'TIMESTAMPTZ NOT NULL DEFAULT now()' },
  { name: 'updated_at', definition: 'TIMESTAMPTZ NOT NULL DEFAULT now()' },
  { name: 'started_at', definition: 'TIMESTAMPTZ NULL' },
  { name: 'completed_at', definition: 'TIMESTAMPTZ NULL' },
  // The last holder: locked_by is cleared with the lease.
  { name: 'completed_by', definition: 'TEXT NULL' },
  { name: 'duration_ms', definition: 'BIGINT NULL' },
  // The fence: set by every claim, cleared by every settle.
  { name: 'lease_token', definition: 'TEXT NULL' },
  // Unique among live jobs.
  { name: 'idempotency_key', definition: 'TEXT NULL' },
  { name: 'latest_key', definition: 'TEXT NULL' },
  { name: 'latest_seq', definition: 'BIGINT NULL' },
  // Not claimable: an older job of the same latest key runs.
  { name: 'blocked', definition: 'BOOLEAN NOT NULL DEFAULT false' },
  // Not claimable while above 0: how many jobs must finish first.
  { name: 'waiting_for', definition: 'INT NOT NULL DEFAULT 0' },
  { name: 'after', definition: 'JSON NULL' },
  // Whether another job comes after this one. Only then do the triggers look for successors.
  { name: 'awaited', definition: 'BOOLEAN NOT NULL DEFAULT false' },
  // Whether its type has a keep limit. Only such jobs are in the index that finds those beyond the limit.
  { name: 'bounded', definition: 'BOOLEAN NOT NULL DEFAULT false' },
  { name: 'tenant', definition: 'JSON NULL' },
  { name: 'options', definition: 'JSON NULL' },
  { name: 'progress', definition: 'JSON NULL' },
  { name: 'result', definition: 'JSON NULL' },
  // The whole error; fail_code and fail_reason are its short form.
  { name: 'error_record', definition: 'JSON NULL' },
  { name: 'replays', definition: 'INT NOT NULL DEFAULT 0' },
  // Set for a failed row that is no dead letter: cancelled, superseded or discarded.
  { name: 'ended', definition: 'TEXT NULL' },
]

/**
 * Every change of state changes an indexed column, so free space in pages would not help. Vacuum therefore runs early.
 */
const STORAGE = `autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05`

/** When a job is due: at its place in the queue, or later if a requeue delayed it. */
const DUE = `greatest(run_at, next_earliest_run_at)`

const CLAIMABLE = `status = 'queued' AND NOT blocked AND waiting_for = 0`

/**
 * The columns and the index of the job tables. The index serves running leases only, so it is partial: each job enters it
 * once, not at every change of state.
 */
function leaseTableSql(qualified: string): string {
  return [
    ...LEASE_COLUMNS.map(({ name, definition }) => addColumn(qualified, name, definition)),
    `CREATE INDEX IF NOT EXISTS idx_jobs_status_lease ON ${qualified} (status, lease_expires_at) WHERE status = 'processing';`,
  ].join('\n')
}

function addColumn(qualified: string, name: string, definition: string): string {
  return `ALTER TABLE ${qualified} ADD COLUMN IF NOT EXISTS ${quote(name)} ${definition};`
}

export function jobsSql(names: Names): string {
  return [
    jobsTable(names),
    textId(names),
    arrival(names),
    indexes(names),
    triggers(names),
    succession(names),
    events(names),
    ownTables(names),
    appendOnly(names),
  ].join('\n\n')
}

function jobsTable({ jobs }: Names): string {
  return [
    `CREATE TABLE IF NOT EXISTS ${jobs} (
  id TEXT COLLATE "C" PRIMARY KEY DEFAULT gen_random_uuid()::text,
  type TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'processing', 'completed', 'failed'))
) WITH (${STORAGE});`,
    ...ADDED_COLUMNS.map(({ name, definition }) => addColumn(jobs, name, definition)),
    leaseTableSql(jobs),
  ].join('\n')
}

/** Millrace treats ids as text. For ids of another type, this index finds them by their text. */
function textId({ jobs }: Names): string {
  const table = jobs.replaceAll("'", "''")
  return `DO $$ BEGIN
  IF (SELECT atttypid NOT IN ('text'::regtype, 'varchar'::regtype) FROM pg_attribute
      WHERE attrelid = '${table}'::regclass AND attname = 'id') THEN
    CREATE UNIQUE INDEX IF NOT EXISTS idx_jobs_id_text ON ${jobs} ((id::text));
  END IF;
END $$;`
}

/** Jobs with one due time run in order of arrival. Rows older than Millrace have no arrival and come last. */
function arrival({ jobs, arrivals }: Names): string {
  return `CREATE SEQUENCE IF NOT EXISTS ${arrivals};
${addColumn(jobs, 'arrival', 'BIGINT NULL')}
ALTER TABLE ${jobs} ALTER COLUMN arrival SET DEFAULT nextval(${literal(arrivals)});`
}

function indexes({ jobs }: Names): string {
  return `-- One probe per type and priority on this index is what keeps a claim's cost flat.
CREATE INDEX IF NOT EXISTS idx_jobs_claim ON ${jobs} (type, priority, (${DUE}), arrival) WHERE ${CLAIMABLE};
CREATE UNIQUE INDEX IF NOT EXISTS idx_jobs_live_key ON ${jobs} (idempotency_key)
  WHERE idempotency_key IS NOT NULL AND status IN ('queued', 'processing');
CREATE INDEX IF NOT EXISTS idx_jobs_latest ON ${jobs} (type, latest_key)
  WHERE latest_key IS NOT NULL AND status IN ('queued', 'processing');
CREATE INDEX IF NOT EXISTS idx_jobs_dead ON ${jobs} (completed_at, id) WHERE status = 'failed' AND ended IS NULL;
CREATE INDEX IF NOT EXISTS idx_jobs_bounded ON ${jobs} (type, status, arrival)
  WHERE bounded AND status IN ('completed', 'failed') AND ended IS NULL;`
}

/** Holds for every program that writes to the table: one job in flight per latest key. */
function triggers({ jobs, schema }: Names): string {
  const unblock = `${quote(schema)}.millrace_unblock`
  return `CREATE OR REPLACE FUNCTION ${unblock}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE ${jobs} SET blocked = false
    WHERE type = NEW.type AND latest_key = NEW.latest_key AND status = 'queued' AND blocked;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS millrace_unblock ON ${jobs};
CREATE TRIGGER millrace_unblock AFTER UPDATE ON ${jobs} FOR EACH ROW
  WHEN (OLD.latest_key IS NOT NULL AND NOT OLD.blocked AND OLD.status IN ('queued', 'processing')
    AND NEW.status NOT IN ('queued', 'processing'))
  EXECUTE FUNCTION ${unblock}();`
}

/**
 * When any program ends, replays or deletes a job, its successors go on, or wait for it again. A job that is over for good
 * no longer waits; a dead or discarded letter may come back.
 */
function succession({ jobs, edges, schema }: Names): string {
  const name = `${quote(schema)}.millrace_succession`
  return `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_gone BOOLEAN := TG_OP = 'DELETE';
  is_live BOOLEAN := NOT is_gone AND NEW.status NOT IN ('completed', 'failed');
  is_dead BOOLEAN := NOT is_gone AND NEW.status = 'failed' AND NEW.ended IS NULL;
BEGIN
  IF OLD.awaited THEN
    WITH changed AS (
      UPDATE ${edges} SET held = NOT held
      WHERE after_id = OLD.id::text AND held <> (is_live OR is_dead AND if_dead = 'wait') RETURNING job_id, held)
    UPDATE ${jobs} AS job SET waiting_for = waiting_for + CASE WHEN changed.held THEN 1 ELSE -1 END
      FROM changed WHERE job.id::text = changed.job_id;
  END IF;
  IF is_gone THEN
    DELETE FROM ${edges} WHERE after_id = OLD.id::text;
  END IF;
  IF is_gone OR NOT is_live AND NOT is_dead AND NEW.ended IS DISTINCT FROM 'discarded' THEN
    DELETE FROM ${edges} WHERE job_id = OLD.id::text;
  END IF;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS millrace_succession ON ${jobs};
CREATE TRIGGER millrace_succession AFTER UPDATE ON ${jobs} FOR EACH ROW
  WHEN ((OLD.awaited OR OLD.after IS NOT NULL) AND (OLD.status <> NEW.status OR OLD.ended IS DISTINCT FROM NEW.ended))
  EXECUTE FUNCTION ${name}();
DROP TRIGGER IF EXISTS millrace_succession_end ON ${jobs};
CREATE TRIGGER millrace_succession_end AFTER DELETE ON ${jobs} FOR EACH ROW
  WHEN (OLD.awaited OR OLD.after IS NOT NULL)
  EXECUTE FUNCTION ${name}();`
}

/** No foreign key: the table holds events of several tables, and events may outlive their job. */
function events({ events: table, eventNumbers }: Names): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  job_id TEXT COLLATE "C" NOT NULL,
  data JSONB NOT NULL
);
CREATE SEQUENCE IF NOT EXISTS ${eventNumbers};
${addColumn(table, 'seq', 'BIGINT NULL')}
ALTER TABLE ${table} ALTER COLUMN seq SET DEFAULT nextval(${literal(eventNumbers)});
CREATE INDEX IF NOT EXISTS idx_job_events_job ON ${table} (job_id, seq);`
}

function ownTables(names: Names): string {
  return `-- The highest sequence number seen per latest key: an older version never runs after a newer one.
CREATE TABLE IF NOT EXISTS ${names.latest} (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq BIGINT NOT NULL,
  PRIMARY KEY (type, latest_key)
);

-- Recent claims of rate-limited types, one row per claim call; the lock on the type's row keeps two claims apart.
CREATE TABLE IF NOT EXISTS ${names.limits} (type TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS ${startsTable(names)} (
  type TEXT NOT NULL,
  at TIMESTAMPTZ NOT NULL,
  starts INT NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_millrace_starts_type ON ${startsTable(names)} (type, at);

-- Which job comes after which, for jobs that may still run. held: the earlier job holds it back.
CREATE TABLE IF NOT EXISTS ${names.edges} (
  job_id TEXT COLLATE "C" NOT NULL,
  after_id TEXT COLLATE "C" NOT NULL,
  if_dead TEXT NOT NULL,
  held BOOLEAN NOT NULL,
  PRIMARY KEY (after_id, job_id)
);
CREATE INDEX IF NOT EXISTS idx_millrace_edges_job ON ${names.edges} (job_id);

CREATE TABLE IF NOT EXISTS ${names.schedules} (
  name TEXT COLLATE "C" PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at TIMESTAMPTZ NULL,
  body TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS ${names.leaders} (
  office TEXT PRIMARY KEY,
  holder TEXT NULL,
  term BIGINT NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL
);`
}

/** Migration 4 removes it. */
export function startsTable({ schema }: Names): string {
  return `${quote(schema)}.${quote('millrace_starts')}`
}

/** Every act on a dead letter, and other acts of operators. Append-only; entries outlive their jobs. */
function appendOnly({ audit, schema }: Names): string {
  const name = `${quote(schema)}.millrace_audit_kept`
  return `CREATE TABLE IF NOT EXISTS ${audit} (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at TIMESTAMPTZ NOT NULL,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  action TEXT NOT NULL,
  job_id TEXT NOT NULL,
  type TEXT NOT NULL,
  before JSON NOT NULL,
  after JSON NULL
);
CREATE INDEX IF NOT EXISTS idx_millrace_audit_job ON ${audit} (job_id, seq);
CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit is append-only';
END $$;
DROP TRIGGER IF EXISTS millrace_audit_kept ON ${audit};
CREATE TRIGGER millrace_audit_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ${audit}
  FOR EACH STATEMENT EXECUTE FUNCTION ${name}();`
}
