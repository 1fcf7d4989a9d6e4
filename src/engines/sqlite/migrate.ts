import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { MigrationPlan } from '../../engine/open.ts'
import { EngineError, isMillraceError } from '../../errors.ts'
import { toIso } from '../../time/iso.ts'
import { assertNotNewer } from '../sql/schema-version.ts'
import { Connection } from './database.ts'
import { toOpenError } from './faults.ts'
import { MIGRATIONS, SCHEMA_VERSION } from './migrations.ts'

/** A table of our own, because the file and its user_version may belong to the user. */
const VERSION_TABLE = `
CREATE TABLE IF NOT EXISTS millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)`

const HAS_VERSION_TABLE = `SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'millrace_schema'`
const READ_VERSION = `SELECT coalesce(max(version), 0) AS version FROM millrace_schema`
const WRITE_VERSION = `INSERT INTO millrace_schema (version, name, applied_at) VALUES (?, ?, ?)`

/** 0 for a file without Millrace's tables. */
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

/** Brings the schema to the current version, completely or not at all. Call inside a write transaction. Idempotent. */
export function applyMigrations(connection: Connection, nowMs: number): void {
  assertNotNewer(schemaVersion(connection), SCHEMA_VERSION)
  connection.exec(VERSION_TABLE)
  for (const migration of MIGRATIONS) {
    if (migration.version <= schemaVersion(connection)) continue
    for (const sql of migration.statements(connection)) connection.exec(sql)
    connection.handle.prepare(WRITE_VERSION).run(migration.version, migration.name, toIso(nowMs))
  }
}

export function assertCurrent(connection: Connection): void {
  assertNotNewer(schemaVersion(connection), SCHEMA_VERSION)
  const version = schemaVersion(connection)
  if (version === SCHEMA_VERSION) return
  throw new EngineError(
    'ERR_SCHEMA_MISSING',
    `the database has schema version ${version}, this Millrace needs ${SCHEMA_VERSION}; run 'millrace migrate' or open without 'migrate: false'`,
  )
}

/** How long a read-only command waits for a checkpoint of another process. */
const BUSY_MS = 1_000

/** What opening the file with `migrate` would change. Read-only: a missing file is not created. */
export function planMigrationsOf(file: string): MigrationPlan {
  const isThere = file !== ':memory:' && existsSync(file)
  try {
    const handle = new DatabaseSync(isThere ? file : ':memory:', { readOnly: isThere, timeout: BUSY_MS })
    const connection = new Connection(handle)
    try {
      refuseNewer(connection)
      return { version: schemaVersion(connection), latest: SCHEMA_VERSION, pending: pendingMigrations(connection) }
    } finally {
      connection.close()
    }
  } catch (error) {
    throw toOpenError(error, 'reading', file)
  }
}

function refuseNewer(connection: Connection): void {
  try {
    assertCurrent(connection)
  } catch (error) {
    if (!isMillraceError(error, 'ERR_SCHEMA_MISSING')) throw error
  }
}
