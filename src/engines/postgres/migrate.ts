import type { MigrationPlan } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import type { Database } from './database.ts'
import { toEngineError } from './faults.ts'
import {
  CREATE_HOME,
  grantSql,
  LOCK_MIGRATION,
  LOOK_AT_SERVER,
  READ_TYPES,
  READ_VERSION,
  writeVersion,
} from './migrate-statements.ts'
import { jobsSql } from './migrations/0001-jobs.ts'
import { presenceSql } from './migrations/0002-presence.ts'
import { outboxSql } from './migrations/0003-outbox.ts'
import { limitsSql } from './migrations/0004-limits.ts'
import { latestKeysSql } from './migrations/0005-latest-keys.ts'
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
  { version: 5, name: 'latest-keys', sql: latestKeysSql },
]

/** The whole schema, as an empty database gets it. */
export function schemaSql(names: Names): string {
  return MIGRATIONS.map(({ sql }) => sql(names)).join('\n\n')
}

export const SCHEMA_VERSION: number = MIGRATIONS.at(-1)?.version ?? 0

/** gen_random_uuid and what the claim is built of are there from this one on. */
const SERVER_MIN = 130_000

/** What the doctor says of it too. */
export const ARRAY_NULLS_OFF = 'array_nulls is off: the server takes every missing value of a list for the text NULL'
export const ARRAY_NULLS_ADVICE = 'set it on for this database: ALTER DATABASE … SET array_nulls = on'

/** All that JSON may hold is stored by UTF8 alone. */
export function wrongEncoding(encoding: string): string {
  return `the database has the encoding ${encoding}, which cannot keep every text: jobs with such a payload or error would be refused`
}
export const ENCODING_ADVICE =
  "give Millrace a database with ENCODING UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)"

interface ServerRow {
  readonly version: number
  readonly standby: boolean
  readonly migrated: boolean
  readonly isolation: string
  readonly encoding: string
  readonly array_nulls: string
}

async function lookAtServer(database: Database): Promise<ServerRow | undefined> {
  const [server] = await database.rows<ServerRow>(LOOK_AT_SERVER, database.names.versions)
  if (server === undefined) return undefined
  if (server.version < SERVER_MIN) {
    const found = Math.floor(server.version / 10_000)
    throw new EngineError('ERR_STORAGE_OPEN', `Postgres ${found} is too old; Millrace needs 13 or newer`)
  }
  if (server.standby) {
    throw new EngineError('ERR_STORAGE_READONLY', 'this Postgres is a standby; give the address of the primary')
  }
  if (server.array_nulls === 'off')
    throw new EngineError('ERR_STORAGE_OPEN', `${ARRAY_NULLS_OFF}; ${ARRAY_NULLS_ADVICE}`)
  if (server.isolation !== 'read committed') database.beginEach()
  return server
}

/** 0 for a schema that Millrace has never touched. */
async function schemaVersion(database: Database): Promise<number> {
  return versionOn(await lookAtServer(database), database)
}

async function versionOn(server: ServerRow | undefined, database: Database): Promise<number> {
  if (server?.migrated !== true) return 0
  return (await database.rows<{ version: number }>(READ_VERSION))[0]?.version ?? 0
}

/** The version of a schema that may be migrated: a database of another encoding could not keep what jobs hold. */
async function migratableVersion(database: Database): Promise<number> {
  const server = await lookAtServer(database)
  if (server !== undefined && server.encoding !== 'UTF8') {
    throw new EngineError('ERR_STORAGE_OPEN', `${wrongEncoding(server.encoding)}; ${ENCODING_ADVICE}`)
  }
  const version = await versionOn(server, database)
  assertNotNewer(version)
  return version
}

/** What applying would run, as SQL that a person may run instead: each part is a transaction and may be repeated. Looks only. */
export async function planMigrationsOf(database: Database, grant: string | null): Promise<MigrationPlan> {
  const { names } = database
  const { version, latest, pending } = planFrom(await migratableVersion(database), names, grant)
  const whole = (sql: string): string =>
    ['BEGIN;', LOCK_MIGRATION(names), CREATE_HOME(names), sql, 'COMMIT;'].join('\n')
  return { version, latest, pending: pending.map(({ name, sql }) => ({ name, sql: whole(sql) })) }
}

function planFrom(version: number, names: Names, grant: string | null): MigrationPlan {
  const pending = MIGRATIONS.filter((migration) => migration.version > version).map((migration) => ({
    name: migration.name,
    sql: `${migration.sql(names)}\n\n${writeVersion(migration.version, migration.name)(names)}`,
  }))
  const rights = grant === null ? [] : [{ name: `rights of ${grant}`, sql: grantSql(names, grant) }]
  return { version, latest: SCHEMA_VERSION, pending: [...pending, ...rights] }
}

/** Brings the schema to the present version, whole or not at all, and tells what it did. Repeating is harmless. */
export async function applyMigrations(database: Database, grant: string | null): Promise<MigrationPlan> {
  const version = await migratableVersion(database)
  if (version === SCHEMA_VERSION && grant === null) return planFrom(version, database.names, null)
  try {
    return await database.transaction(async (queries) => {
      await queries.script(LOCK_MIGRATION)
      await queries.script(CREATE_HOME)
      // Another may have migrated while this one waited for the lock.
      const [found] = await queries.rows<{ version: number }>(READ_VERSION)
      const plan = planFrom(found?.version ?? 0, database.names, grant)
      for (const { sql } of plan.pending) await queries.script(() => sql)
      return plan
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
