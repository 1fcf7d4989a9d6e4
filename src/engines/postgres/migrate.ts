import type { MigrationPlan } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import type { Database } from './database.ts'
import { toEngineError } from './faults.ts'
import {
  BEGIN_MIGRATION,
  grantSql,
  LOOK_AT_SERVER,
  READ_TYPES,
  READ_VERSION,
  WRITE_VERSION,
} from './migrate-statements.ts'
import { jobsSql } from './migrations/0001-jobs.ts'
import { presenceSql } from './migrations/0002-presence.ts'
import { outboxSql } from './migrations/0003-outbox.ts'
import { limitsSql } from './migrations/0004-limits.ts'
import { type ColumnTypes, type Names, namesIn } from './names.ts'

interface Migration {
  readonly version: number
  readonly name: string
  sql(names: Names): string
}

/** In order; a migration is never edited once released, only followed by another. */
const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'jobs', sql: jobsSql },
  { version: 2, name: 'presence', sql: presenceSql },
  { version: 3, name: 'outbox', sql: outboxSql },
  { version: 4, name: 'limits', sql: limitsSql },
]

/** The whole schema, as an empty database gets it. */
export function schemaSql(names: Names): string {
  return MIGRATIONS.map(({ sql }) => sql(names)).join('\n\n')
}

export const SCHEMA_VERSION: number = MIGRATIONS.at(-1)?.version ?? 0

/** gen_random_uuid and what the claim is built of are there from this one on. */
const SERVER_MIN = 130_000

interface ServerRow {
  readonly version: number
  readonly standby: boolean
  readonly migrated: boolean
  readonly isolation: string
}

/** 0 for a schema that Millrace has never touched. */
async function schemaVersion(database: Database): Promise<number> {
  const [server] = await database.rows<ServerRow>(LOOK_AT_SERVER, database.names.versions)
  if (server === undefined) return 0
  if (server.version < SERVER_MIN) {
    const found = Math.floor(server.version / 10_000)
    throw new EngineError('ERR_STORAGE_OPEN', `Postgres ${found} is too old; Millrace needs 13 or newer`)
  }
  if (server.standby) {
    throw new EngineError('ERR_STORAGE_READONLY', 'this Postgres is a standby; give the address of the primary')
  }
  if (server.isolation !== 'read committed') database.beginEach()
  if (!server.migrated) return 0
  return (await database.rows<{ version: number }>(READ_VERSION))[0]?.version ?? 0
}

/** What applying would run, as SQL. Looks only. */
export async function planMigrationsOf(database: Database, grant: string | null): Promise<MigrationPlan> {
  const version = await schemaVersion(database)
  assertNotNewer(version)
  const pending = MIGRATIONS.filter((migration) => migration.version > version).map((migration) => ({
    name: migration.name,
    sql: migration.sql(database.names),
  }))
  const rights = grant === null ? [] : [{ name: `rights of ${grant}`, sql: grantSql(database.names, grant) }]
  return { version, latest: SCHEMA_VERSION, pending: [...pending, ...rights] }
}

/** Brings the schema to the present version, whole or not at all. Repeating is harmless. */
export async function applyMigrations(database: Database, grant: string | null): Promise<void> {
  assertNotNewer(await schemaVersion(database))
  try {
    await database.transaction(async (queries) => {
      await queries.script(BEGIN_MIGRATION)
      const [found] = await queries.rows<{ version: number }>(READ_VERSION)
      for (const migration of MIGRATIONS) {
        if (migration.version <= (found?.version ?? 0)) continue
        await queries.script(migration.sql)
        await queries.rows(WRITE_VERSION, migration.version, migration.name)
      }
      if (grant !== null) await queries.script((names) => grantSql(names, grant))
    })
  } catch (error) {
    throw toEngineError(error, 'migrating')
  }
}

export async function assertCurrent(database: Database): Promise<void> {
  const version = await schemaVersion(database)
  assertNotNewer(version)
  if (version === SCHEMA_VERSION) return
  throw new EngineError(
    'ERR_SCHEMA_MISSING',
    `schema '${database.names.schema}' has version ${version} of Millrace's tables, this Millrace needs ${SCHEMA_VERSION}; run 'millrace migrate', Postgres is never migrated by opening it`,
  )
}

/** A table that was there before us may have ids and payloads of another type; statements are written for them. */
export async function adoptTypes(database: Database): Promise<void> {
  const [types] = await database.rows<ColumnTypes>(READ_TYPES)
  if (types === undefined) return
  const { idType, payloadType } = types
  if (!ID_TYPES.includes(idType) || !PAYLOAD_TYPES.includes(payloadType)) {
    throw new EngineError(
      'ERR_SCHEMA_MISSING',
      `'${database.names.schema}.jobs' has ids of type ${idType} and payloads of type ${payloadType}; Millrace knows ids of ${ID_TYPES.join(', ')} and payloads of ${PAYLOAD_TYPES.join(', ')}; give it another schema by '?schema='`,
    )
  }
  database.adopt(namesIn(database.names.schema, types))
}

const ID_TYPES: readonly string[] = ['text', 'character varying', 'uuid', 'bigint', 'integer']
const PAYLOAD_TYPES: readonly string[] = ['text', 'json', 'jsonb']

/** A newer Millrace may have given columns another meaning: touching them could lose jobs. */
function assertNotNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return
  throw new EngineError(
    'ERR_SCHEMA_NEWER',
    `the database has schema version ${version}, this Millrace knows ${SCHEMA_VERSION}; upgrade Millrace, nothing was changed`,
  )
}
