/** The tables of a workload and their versions. Each workload migrates its own, whichever others share the database. */
import {
  assertNotNewer,
  lastOf,
  raiseNeeded,
  STORED_VERSIONS,
  type Versioned,
} from '../../src/engines/sql/schema-version.ts'
import { EngineError } from '../../src/errors.ts'
import { toIso } from '../../src/time/iso.ts'
import { numberOf } from './columns.ts'
import type { Dialect, Queries, WorkloadDatabase } from './database.ts'

export interface WorkloadSchema {
  /** As `millrace migrate --workload` takes it. */
  readonly name: string
  /** In order. A released migration is never edited, only followed by another. */
  readonly migrations: readonly Migration[]
}

export interface Migration extends Versioned {
  /** Several statements without parameters, for each database. */
  readonly sql: Readonly<Record<Dialect['name'], string>>
}

const VERSIONS = 'millrace_workloads'

const CREATE_VERSIONS = `CREATE TABLE IF NOT EXISTS {${VERSIONS}} (
  workload TEXT NOT NULL,
  version INTEGER NOT NULL,
  applied_at TEXT NOT NULL,
  PRIMARY KEY (workload, version)
)`
const HAS_VERSIONS: Readonly<Record<Dialect['name'], string>> = {
  sqlite: `SELECT name FROM sqlite_master WHERE type = 'table' AND name = '${VERSIONS}'`,
  postgres: `SELECT 1 FROM pg_class WHERE oid = to_regclass('{${VERSIONS}}')`,
}
const READ_VERSIONS = `SELECT ${STORED_VERSIONS} FROM {${VERSIONS}} WHERE workload = $1`

/** Two processes that migrate at once would both find the tables missing. SQLite's write lock does the same. */
const LOCK_MIGRATION = `SELECT pg_advisory_xact_lock(hashtext('millrace workloads'))`

/** The last migration of the workload; 0 without its tables. */
async function appliedTo(queries: Queries, { name, migrations }: WorkloadSchema): Promise<number> {
  if ((await queries.rows(HAS_VERSIONS[queries.dialect.name])).length === 0) return 0
  const [row = {}] = await queries.rows(READ_VERSIONS, [name])
  const versions = { needed: numberOf(row, 'needed'), applied: numberOf(row, 'applied') }
  assertNotNewer(versions, lastOf(migrations))
  return versions.applied
}

/** The SQL that is missing, for `--dry-run`. */
export async function plannedMigrations(
  database: WorkloadDatabase,
  schema: WorkloadSchema,
): Promise<readonly Migration[]> {
  const applied = await appliedTo({ dialect: database.dialect, rows: database.read }, schema)
  return schema.migrations.filter((migration) => migration.version > applied)
}

/** Creates what is missing and returns the versions that were applied. Idempotent, and safe beside other processes. */
export function migrateSchema(
  database: WorkloadDatabase,
  schema: WorkloadSchema,
  nowMs: number,
): Promise<readonly number[]> {
  const { name } = database.dialect
  return database.transaction(async (transaction) => {
    if (name === 'postgres') await transaction.rows(LOCK_MIGRATION)
    await transaction.rows(CREATE_VERSIONS)
    const applied = await appliedTo(transaction, schema)
    const pending = schema.migrations.filter((migration) => migration.version > applied)
    for (const migration of pending) {
      await transaction.rows(migration.sql[name])
      await transaction.rows(`INSERT INTO {${VERSIONS}} (workload, version, applied_at) VALUES ($1, $2, $3)`, [
        ...[schema.name, -migration.version],
        toIso(nowMs),
      ])
      await transaction.rows(`${raiseNeeded(`{${VERSIONS}}`, migration)} AND workload = $1`, [schema.name])
    }
    return pending.map((migration) => migration.version)
  })
}

/** Creates what is missing, or refuses to go on without it. */
export async function checkSchemas(
  database: WorkloadDatabase,
  schemas: readonly WorkloadSchema[],
  { migrate, nowMs }: { readonly migrate: boolean; readonly nowMs: number },
): Promise<void> {
  for (const schema of schemas) {
    if ((await plannedMigrations(database, schema)).length === 0) continue
    if (!migrate) {
      throw new EngineError(
        'ERR_SCHEMA_MISSING',
        `the tables of the workload '${schema.name}' are missing or old; run: millrace migrate --workload ${schema.name}`,
      )
    }
    await migrateSchema(database, schema, nowMs)
  }
}
