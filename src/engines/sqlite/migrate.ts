import { EngineError } from '../../errors.ts'
import { toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'
import { ADDED_COLUMNS, CANONICAL_TABLE, INDEXES_AND_TABLES } from './migrations/0001-job-queue.ts'
import { PRESENCE_AND_PAUSES } from './migrations/0002-presence.ts'
import { OUTBOX } from './migrations/0003-outbox.ts'
import { CLOCK } from './migrations/0004-clock.ts'
import { LATEST_IDLE } from './migrations/0005-latest-keys.ts'

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
const MIGRATIONS: readonly Migration[] = [
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

/** Named after us, because the file may be the user's own and user_version theirs. */
const VERSION_TABLE = `
CREATE TABLE IF NOT EXISTS millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)`

const HAS_VERSION_TABLE = `SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'millrace_schema'`
const READ_VERSION = `SELECT coalesce(max(version), 0) AS version FROM millrace_schema`
const WRITE_VERSION = `INSERT INTO millrace_schema (version, name, applied_at) VALUES (?, ?, ?)`

/** 0 for a file that Millrace has never touched. */
export function schemaVersion(connection: Connection): number {
  if (connection.handle.prepare(HAS_VERSION_TABLE).get() === undefined) return 0
  return (connection.handle.prepare(READ_VERSION).get() as { version: number }).version
}

/** What `applyMigrations` would run, as SQL. */
export function pendingMigrations(connection: Connection): readonly { readonly name: string; readonly sql: string }[] {
  const version = schemaVersion(connection)
  return MIGRATIONS.filter((migration) => migration.version > version).map((migration) => ({
    name: migration.name,
    sql: migration.statements(connection).join('\n'),
  }))
}

/** Brings the schema to the present version, whole or not at all. Call inside a write transaction. Repeating is harmless. */
export function applyMigrations(connection: Connection, nowMs: number): void {
  assertNotNewer(connection)
  connection.exec(VERSION_TABLE)
  for (const migration of MIGRATIONS) {
    if (migration.version <= schemaVersion(connection)) continue
    for (const sql of migration.statements(connection)) connection.exec(sql)
    connection.handle.prepare(WRITE_VERSION).run(migration.version, migration.name, toIso(nowMs))
  }
}

export function assertCurrent(connection: Connection): void {
  assertNotNewer(connection)
  const version = schemaVersion(connection)
  if (version === SCHEMA_VERSION) return
  throw new EngineError(
    'ERR_SCHEMA_MISSING',
    `the database has schema version ${version}, this Millrace needs ${SCHEMA_VERSION}; run 'millrace migrate' or open without 'migrate: false'`,
  )
}

/** A newer Millrace may have given columns another meaning: touching them could lose jobs. */
export function assertNotNewer(connection: Connection): void {
  const version = schemaVersion(connection)
  if (version <= SCHEMA_VERSION) return
  throw new EngineError(
    'ERR_SCHEMA_NEWER',
    `the database has schema version ${version}, this Millrace knows ${SCHEMA_VERSION}; upgrade Millrace, nothing was changed`,
  )
}
