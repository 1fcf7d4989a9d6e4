import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { MigrationPlan } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import { toIso } from '../../time/iso.ts'
import {
  assertNotNewer,
  isBehind,
  lastOf,
  NO_VERSIONS,
  raiseNeeded,
  STORED_VERSIONS,
  type StoredVersions,
} from '../sql/schema-version.ts'
import { Connection } from './database.ts'
import { toOpenError } from './faults.ts'
import { MIGRATIONS, type Migration, SCHEMA_VERSION } from './migrations.ts'

/** A table of our own, because the file and its user_version may belong to the user. */
const VERSION_TABLE = `
CREATE TABLE IF NOT EXISTS millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)`

const HAS_VERSION_TABLE = `SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'millrace_schema'`
const READ_VERSIONS = `SELECT ${STORED_VERSIONS} FROM millrace_schema`
const WRITE_VERSION = `INSERT INTO millrace_schema (version, name, applied_at) VALUES (?, ?, ?)`

export function schemaVersions(connection: Connection): StoredVersions {
  if (connection.handle.prepare(HAS_VERSION_TABLE).get() === undefined) return NO_VERSIONS
  return connection.handle.prepare(READ_VERSIONS).get() as StoredVersions
}

/** What `applyMigrations` would run, as SQL. */
export function pendingMigrations(connection: Connection): readonly { readonly name: string; readonly sql: string }[] {
  const { applied } = schemaVersions(connection)
  return MIGRATIONS.filter((migration) => migration.version > applied).map((migration) => ({
    name: migration.name,
    sql: migration.statements(connection).join('\n'),
  }))
}

/** Brings the schema to the current version, completely or not at all. Call inside a write transaction. Idempotent. */
export function applyMigrations(
  connection: Connection,
  nowMs: number,
  migrations: readonly Migration[] = MIGRATIONS,
): void {
  const versions = schemaVersions(connection)
  assertNotNewer(versions, lastOf(migrations))
  connection.exec(VERSION_TABLE)
  for (const migration of migrations) {
    if (migration.version <= versions.applied) continue
    for (const sql of migration.statements(connection)) connection.exec(sql)
    connection.handle.prepare(WRITE_VERSION).run(-migration.version, migration.name, toIso(nowMs))
    connection.exec(raiseNeeded('millrace_schema', migration))
  }
}

/** Throws if a newer Millrace has migrated the file and this one cannot work on it. */
export function needsMigration(connection: Connection): boolean {
  return isBehind(schemaVersions(connection), SCHEMA_VERSION)
}

export function assertCurrent(connection: Connection): void {
  if (!needsMigration(connection)) return
  throw new EngineError(
    'ERR_SCHEMA_MISSING',
    `the database has schema version ${schemaVersions(connection).applied}, this Millrace needs ${SCHEMA_VERSION}; run 'millrace migrate' or open without 'migrate: false'`,
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
      const versions = schemaVersions(connection)
      assertNotNewer(versions, SCHEMA_VERSION)
      return { version: versions.applied, latest: SCHEMA_VERSION, pending: pendingMigrations(connection) }
    } finally {
      connection.close()
    }
  } catch (error) {
    throw toOpenError(error, 'reading', file)
  }
}
