import type { WorkloadSchema } from '../database/schema.ts'

/** The tables beside `memories`, which differ in the names of their types only. */
const besides = ({
  time,
  real,
  whole,
}: Readonly<Record<'time' | 'real' | 'whole', string>>): string => `CREATE TABLE {memory_merges} (
  target_id TEXT NOT NULL,
  source_id TEXT NOT NULL,
  source_version ${whole} NOT NULL,
  workspace_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  consolidation_type TEXT NOT NULL,
  job_id TEXT NOT NULL,
  merged_at ${time} NOT NULL,
  PRIMARY KEY (target_id, source_id)
);
CREATE INDEX memory_merges_source ON {memory_merges}(source_id);
CREATE INDEX memory_merges_job ON {memory_merges}(job_id);

CREATE TABLE {memory_decays} (
  run_id TEXT PRIMARY KEY,
  factor ${real} NOT NULL,
  after_seq ${whole} NOT NULL,
  decayed ${whole} NOT NULL,
  started_at ${time} NOT NULL,
  finished_at ${time}
);

CREATE TABLE {memory_vector_removals} (
  embedding_id TEXT PRIMARY KEY,
  removed_at ${time} NOT NULL
);`

/**
 * - `version` counts the changes of a memory's text, so that a late vector never replaces a newer one.
 * - `merged_at` is set by the first merge that takes a memory in. It halves the importance, and no other does until the text changes.
 * - `memory_merges` says which memories a consolidation was made from, and which version of each. Its rows outlive a forgotten target, so that a retry
 *   does not write it again.
 * - `memory_decays` holds the runs of the decay and how far each has come.
 * - `memory_vector_removals` holds vectors that are still to be removed: they can be in another database.
 *
 * `seq` is a column of its own because VACUUM may renumber rowids, and the full text refers to them.
 */
const SQLITE = `CREATE TABLE {memories} (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  workspace_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  type TEXT NOT NULL,
  content TEXT NOT NULL,
  importance REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
  embedding_id TEXT,
  source_type TEXT NOT NULL,
  source_id TEXT,
  metadata TEXT NOT NULL CHECK (json_valid(metadata)),
  version INTEGER NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  expires_at TEXT,
  merged_at TEXT
);
CREATE INDEX memories_owner ON {memories}(workspace_id, user_id, created_at);
CREATE INDEX memories_expires ON {memories}(expires_at) WHERE expires_at IS NOT NULL;

CREATE VIRTUAL TABLE {memories_fts} USING fts5(content, content = 'memories', content_rowid = 'seq');
-- Without it, the words of a forgotten memory stay in the index until its segments are merged.
INSERT INTO {memories_fts}(memories_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER memories_fts_insert AFTER INSERT ON memories BEGIN
  INSERT INTO memories_fts(rowid, content) VALUES (NEW.seq, NEW.content);
END;
CREATE TRIGGER memories_fts_delete AFTER DELETE ON memories BEGIN
  INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', OLD.seq, OLD.content);
END;
CREATE TRIGGER memories_fts_update AFTER UPDATE OF content ON memories BEGIN
  INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', OLD.seq, OLD.content);
  INSERT INTO memories_fts(rowid, content) VALUES (NEW.seq, NEW.content);
END;

${besides({ time: 'TEXT', real: 'REAL', whole: 'INTEGER' })}`

const POSTGRES = `CREATE TABLE {memories} (
  seq BIGINT GENERATED ALWAYS AS IDENTITY,
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  type TEXT NOT NULL,
  content TEXT NOT NULL,
  importance DOUBLE PRECISION NOT NULL CHECK (importance BETWEEN 0 AND 1),
  embedding_id TEXT,
  source_type TEXT NOT NULL,
  source_id TEXT,
  metadata JSONB NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ,
  merged_at TIMESTAMPTZ,
  words TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED
);
CREATE UNIQUE INDEX memories_seq ON {memories}(seq);
CREATE INDEX memories_owner ON {memories}(workspace_id, user_id, created_at);
CREATE INDEX memories_expires ON {memories}(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_words ON {memories} USING GIN (words);

${besides({ time: 'TIMESTAMPTZ', real: 'DOUBLE PRECISION', whole: 'BIGINT' })}`

/** For `openDatabase` and `millrace migrate --workload memories`. */
export const memoriesSchema: WorkloadSchema = {
  name: 'memories',
  migrations: [{ version: 1, sql: { sqlite: SQLITE, postgres: POSTGRES } }],
}
