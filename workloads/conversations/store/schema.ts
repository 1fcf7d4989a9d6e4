/** The pipeline's tables, beside `job_queue` in the same SQLite file. The hook is built from this file too. */
import {
  assertNotNewer,
  isBehind,
  lastOf,
  NO_VERSIONS,
  raiseNeeded,
  STORED_VERSIONS,
  type StoredVersions,
  type Versioned,
} from '../../../src/engines/sql/schema-version.ts'
import type { SqliteDatabase } from '../../../src/engines/sqlite/database.ts'

const TABLES = `
CREATE TABLE conversations (
  id TEXT PRIMARY KEY,
  -- ai_validation_completed, ai_validation_timestamp, extracted_seq.
  metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);

-- Only sanitised text is ever written here.
CREATE TABLE messages (
  id TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
  -- The place in the conversation, from 1.
  seq INTEGER NOT NULL,
  content TEXT NOT NULL,
  -- The rules that sanitised it.
  sanitization_version TEXT NOT NULL,
  -- When sanitize_ai_validation was done with it.
  validated_at TEXT,
  created_at TEXT NOT NULL,
  UNIQUE (conversation_id, seq)
);
CREATE INDEX idx_messages_unvalidated ON messages(conversation_id, seq) WHERE validated_at IS NULL;

CREATE TABLE sanitization_log (
  id TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
  message_id TEXT NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
  category TEXT NOT NULL,
  -- HMAC-SHA-256 with the local secret: a bare hash of a mail address or phone number can be reversed by guessing.
  original_snippet_hash TEXT NOT NULL,
  -- Null while the snippet still stands in the message. Such a finding is open and stops uploads.
  replacement TEXT,
  -- 'rules' or 'ai'.
  detector TEXT NOT NULL,
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  created_at TEXT NOT NULL
);
CREATE INDEX idx_sanitization_log_conversation ON sanitization_log(conversation_id);
CREATE INDEX idx_sanitization_log_message ON sanitization_log(message_id);

CREATE TABLE learnings (
  id TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
  category TEXT NOT NULL,
  title TEXT NOT NULL,
  content TEXT NOT NULL,
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  tags TEXT NOT NULL CHECK (json_valid(tags)),
  dedupe_hash TEXT NOT NULL UNIQUE,
  source_message_ids TEXT NOT NULL CHECK (json_valid(source_message_ids)),
  created_at TEXT NOT NULL
);
CREATE INDEX idx_learnings_conversation ON learnings(conversation_id);

CREATE VIRTUAL TABLE learnings_fts USING fts5(title, content, content = 'learnings', content_rowid = 'rowid');
-- Without it, the words of a deleted learning stay in the index until its segments are merged.
INSERT INTO learnings_fts(learnings_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER learnings_fts_insert AFTER INSERT ON learnings BEGIN
  INSERT INTO learnings_fts(rowid, title, content) VALUES (NEW.rowid, NEW.title, NEW.content);
END;
CREATE TRIGGER learnings_fts_delete AFTER DELETE ON learnings BEGIN
  INSERT INTO learnings_fts(learnings_fts, rowid, title, content) VALUES ('delete', OLD.rowid, OLD.title, OLD.content);
END;
CREATE TRIGGER learnings_fts_update AFTER UPDATE ON learnings BEGIN
  INSERT INTO learnings_fts(learnings_fts, rowid, title, content) VALUES ('delete', OLD.rowid, OLD.title, OLD.content);
  INSERT INTO learnings_fts(rowid, title, content) VALUES (NEW.rowid, NEW.title, NEW.content);
END;

-- Outlives its learning: what was published cannot be taken back, and must not be published twice.
CREATE TABLE uploads (
  id TEXT PRIMARY KEY,
  learning_id TEXT NOT NULL UNIQUE,
  ipfs_cid TEXT,
  chain_tx_hash TEXT,
  status TEXT NOT NULL CHECK (status IN ('ipfs_uploaded', 'tx_submitted', 'confirmed')),
  uploaded_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);

-- Written before a learning is sent to IPFS: a run that is killed or cut off may have published it. Outlives its learning.
CREATE TABLE upload_starts (
  learning_id TEXT PRIMARY KEY,
  ipfs_cid TEXT NOT NULL,
  created_at TEXT NOT NULL
);

-- Every transaction that was signed for an upload, stored before it is sent. A nonce can have several hashes (fee bumps).
CREATE TABLE upload_transactions (
  tx_hash TEXT PRIMARY KEY,
  learning_id TEXT NOT NULL,
  chain_id INTEGER NOT NULL,
  -- The hash of block 0: a chain that was started again under the same id is another chain.
  genesis_hash TEXT NOT NULL,
  contract_address TEXT NOT NULL,
  sender TEXT NOT NULL,
  nonce INTEGER NOT NULL,
  raw TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX idx_upload_transactions_learning ON upload_transactions(learning_id);
CREATE INDEX idx_upload_transactions_nonce ON upload_transactions(chain_id, sender, nonce);

-- For collectMetrics, so that a window costs what ended in it and not what is stored. The engine has no such indexes,
-- because every job of every user would pay for them.
CREATE INDEX idx_job_queue_completed ON job_queue(completed_at, type, duration_ms) WHERE status = 'completed';
CREATE INDEX idx_job_events_at ON job_events(at, name);

-- Entries of spool files that were taken in, so that each is taken in once.
CREATE TABLE spooled_entries (
  id TEXT PRIMARY KEY,
  taken_in_at TEXT NOT NULL
);
`

/** In order. A released migration is never edited, only followed by another. */
const MIGRATIONS: readonly (Versioned & { readonly sql: string })[] = [{ version: 1, sql: TABLES }]

export const CONVERSATIONS_SCHEMA_VERSION: number = lastOf(MIGRATIONS)

const VERSION_TABLE = `
CREATE TABLE IF NOT EXISTS conversations_schema (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)`
const HAS_VERSION_TABLE = `SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'conversations_schema'`
const READ_VERSIONS = `SELECT ${STORED_VERSIONS} FROM conversations_schema`

export function conversationsVersions(database: SqliteDatabase): StoredVersions {
  if (database.prepare(HAS_VERSION_TABLE).get() === undefined) return NO_VERSIONS
  return database.prepare(READ_VERSIONS).get() as StoredVersions
}

/** Throws if a newer Millrace has migrated the tables and this one cannot work on them. */
export function areConversationsBehind(database: SqliteDatabase): boolean {
  return isBehind(conversationsVersions(database), CONVERSATIONS_SCHEMA_VERSION)
}

/** Creates what is missing. Call inside a write transaction, once `job_queue` exists. Idempotent. Refuses newer tables. */
export function migrateConversations(database: SqliteDatabase, nowIso: string): void {
  database.exec(VERSION_TABLE)
  const versions = conversationsVersions(database)
  assertNotNewer(versions, CONVERSATIONS_SCHEMA_VERSION)
  for (const migration of MIGRATIONS) {
    if (migration.version <= versions.applied) continue
    database.exec(migration.sql)
    database
      .prepare(`INSERT INTO conversations_schema (version, applied_at) VALUES (?, ?)`)
      .run(-migration.version, nowIso)
    database.exec(raiseNeeded('conversations_schema', migration))
  }
}
