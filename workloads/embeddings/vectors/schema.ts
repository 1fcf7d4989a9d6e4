import type { WorkloadSchema } from '../../database/schema.ts'

/** Says what to install, where `CREATE EXTENSION` alone would say that a file is missing. */
const PGVECTOR = `DO $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector'
                 AND string_to_array(default_version, '.')::int[] >= ARRAY[0, 8]) THEN
    RAISE EXCEPTION 'the vector store needs pgvector 0.8 or newer on this Postgres; install it (on Debian: apt install postgresql-%-pgvector), then migrate again',
      split_part(current_setting('server_version'), '.', 1);
  END IF;
  CREATE EXTENSION IF NOT EXISTS vector;
END $$`

const INDEXES = `
CREATE UNIQUE INDEX embedding_generations_active ON {embedding_generations} (namespace) WHERE state = 'active';
CREATE UNIQUE INDEX embedding_generations_building ON {embedding_generations} (namespace) WHERE state = 'building';`

/**
 * A namespace has one active generation, whose vectors are read and written. While it moves to another model it has a second
 * one that is being built. The vectors of a generation have a table of their own, embedding_vectors_<generation>.
 */
export const embeddingsSchema: WorkloadSchema = {
  name: 'embeddings',
  migrations: [
    {
      version: 1,
      sql: {
        sqlite: `CREATE TABLE {embedding_generations} (
  generation INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'building', 'retired')),
  model TEXT,
  dimensions INTEGER NOT NULL,
  changes INTEGER NOT NULL DEFAULT 0,
  removals INTEGER NOT NULL DEFAULT 0
);${INDEXES}`,
        postgres: `${PGVECTOR};
CREATE TABLE {embedding_generations} (
  generation BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  namespace TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'building', 'retired')),
  model TEXT,
  dimensions INTEGER NOT NULL
);${INDEXES}
CREATE SEQUENCE {embedding_changes};`,
      },
    },
  ],
}
