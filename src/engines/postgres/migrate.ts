import type { MigrationPlan } from '../../engine/open.ts'
import { EngineError, isMillraceError, type MillraceError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import {
  assertNotNewer,
  isBehind,
  lastOf,
  NO_VERSIONS,
  raiseNeeded,
  STORED_VERSIONS,
  type StoredVersions,
} from '../sql/schema-version.ts'
import type { Database, Queries } from './database.ts'
import { toEngineError } from './faults.ts'
import { NOW } from './fragments.ts'
import { MIGRATIONS, type Migration, SCHEMA_VERSION } from './migrations.ts'
import { type ColumnTypes, literal, type Names, namesIn, quote } from './names.ts'

/** What opening checks before it touches a table. */
export const LOOK_AT_SERVER = (): string => `
SELECT current_setting('server_version_num')::int AS version, pg_is_in_recovery() AS standby,
  to_regclass($2) IS NOT NULL AS migrated,
  current_setting('default_transaction_isolation') AS isolation, current_setting('server_encoding') AS encoding,
  current_setting('array_nulls') AS array_nulls, ${NOW} AS now`

/** The declared types of columns that a table may have had before Millrace. */
export const READ_TYPES = ({ jobs, events }: Names): string => {
  const typeOf = (table: string, column: string): string => `(SELECT format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = to_regclass('${table.replaceAll("'", "''")}') AND attname = '${column}' AND NOT attisdropped)`
  return `SELECT ${typeOf(jobs, 'id')} AS "idType", ${typeOf(jobs, 'payload')} AS "payloadType",
  ${typeOf(events, 'job_id')} AS "eventIdType", ${NOW} AS now`
}

export const READ_VERSIONS = ({ versions }: Names): string =>
  `SELECT ${STORED_VERSIONS}, ${NOW} AS now FROM ${versions}`

/** Concurrent migrations run one after the other, and the second finds nothing to do. It waits as long as the first takes. */
export const LOCK_MIGRATION = ({ schema }: Names): string => `
SELECT pg_advisory_xact_lock(hashtext('millrace_schema'), hashtext(${literal(schema)}));
SET LOCAL lock_timeout = '10s';`

/** CREATE SCHEMA needs a right on the database even if the schema exists, and its owner may not have it. */
export const CREATE_HOME = ({ schema, versions }: Names): string => `
DO $$ BEGIN
  IF to_regnamespace(${literal(quote(schema))}) IS NULL THEN
    CREATE SCHEMA ${quote(schema)};
  END IF;
END $$;
CREATE TABLE IF NOT EXISTS ${versions} (
  version INT PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TIMESTAMPTZ NOT NULL
);`

function writeVersion(migration: Migration, { versions }: Names): string {
  const { version, name } = migration
  return `INSERT INTO ${versions} (version, name, applied_at) SELECT ${-version}, ${literal(name)}, now()
  WHERE NOT EXISTS (SELECT FROM ${versions} WHERE abs(version) = ${version});
${raiseNeeded(versions, migration)};`
}

/** The rights of a worker, client or keeper. None of them changes the schema or the audit. */
export function workerRights(names: Names): readonly { readonly rights: string; readonly on: readonly string[] }[] {
  const jobs = [names.jobs, names.events, names.latest, names.limits, names.edges]
  const beside = [names.records, names.outbox, names.logs, names.tags]
  return [
    { rights: 'SELECT, INSERT, UPDATE, DELETE', on: [...jobs, ...beside] },
    { rights: 'SELECT, INSERT', on: [names.audit] },
    { rights: 'SELECT', on: [names.versions] },
    { rights: 'USAGE', on: [names.arrivals, names.eventNumbers] },
  ]
}

function grantSql(names: Names, role: string): string {
  const to = `TO ${quote(role)}`
  return [
    `GRANT USAGE ON SCHEMA ${quote(names.schema)} ${to};`,
    ...workerRights(names).map(
      ({ rights, on }) => `GRANT ${rights} ON ${rights === 'USAGE' ? 'SEQUENCE ' : ''}${on.join(', ')} ${to};`,
    ),
  ].join('\n')
}

/** The first version with gen_random_uuid and all that the claim uses. */
const SERVER_MIN = 130_000

/** The doctor uses these texts too. */
export const ARRAY_NULLS_OFF = 'array_nulls is off: the server takes every missing value of a list for the text NULL'
export const ARRAY_NULLS_ADVICE = 'set it on for this database: ALTER DATABASE … SET array_nulls = on'

/** Only UTF8 stores every text that JSON may hold. */
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

async function versionsOn(server: ServerRow | undefined, queries: Queries): Promise<StoredVersions> {
  if (server?.migrated !== true) return NO_VERSIONS
  return (await queries.rows<StoredVersions>(READ_VERSIONS))[0] ?? NO_VERSIONS
}

/** Of a schema that may be migrated. A database of another encoding could not store every job. */
async function migratableVersions(database: Database, known: number): Promise<StoredVersions> {
  const server = await lookAtServer(database)
  if (server !== undefined && server.encoding !== 'UTF8') {
    throw new EngineError('ERR_STORAGE_OPEN', `${wrongEncoding(server.encoding)}; ${ENCODING_ADVICE}`)
  }
  const versions = await versionsOn(server, database)
  assertNotNewer(versions, known)
  return versions
}

/** What applying would run, as SQL that a person may run instead. Each part is a transaction and may be repeated. Read-only. */
export async function planMigrationsOf(database: Database, grant: string | null): Promise<MigrationPlan> {
  const { names } = database
  const { applied } = await migratableVersions(database, SCHEMA_VERSION)
  const { version, latest, pending } = planFrom(applied, names, { grant, migrations: MIGRATIONS })
  const whole = (sql: string): string =>
    ['BEGIN;', LOCK_MIGRATION(names), CREATE_HOME(names), sql, 'COMMIT;'].join('\n')
  return { version, latest, pending: pending.map(({ name, sql }) => ({ name, sql: whole(sql) })) }
}

interface Wanted {
  readonly grant: string | null
  readonly migrations: readonly Migration[]
}

function planFrom(version: number, names: Names, { grant, migrations }: Wanted): MigrationPlan {
  const pending = migrations
    .filter((migration) => migration.version > version)
    .map((migration) => ({
      name: migration.name,
      sql: `${migration.sql(names)}\n\n${writeVersion(migration, names)}`,
    }))
  const rights = grant === null ? [] : [{ name: `rights of ${grant}`, sql: grantSql(names, grant) }]
  return { version, latest: lastOf(migrations), pending: [...pending, ...rights] }
}

/** Brings the schema to the current version, completely or not at all, and returns what it ran. Idempotent. */
export async function applyMigrations(database: Database, wanted: Wanted): Promise<MigrationPlan> {
  const known = lastOf(wanted.migrations)
  const { applied } = await migratableVersions(database, known)
  if (applied >= known && wanted.grant === null) return planFrom(applied, database.names, wanted)
  try {
    return await database.transaction(async (queries) => {
      await queries.script(LOCK_MIGRATION)
      await queries.script(CREATE_HOME)
      // Another process may have migrated while this one waited for the lock.
      const [found = NO_VERSIONS] = await queries.rows<StoredVersions>(READ_VERSIONS)
      assertNotNewer(found, known)
      const plan = planFrom(found.applied, database.names, wanted)
      for (const { sql } of plan.pending) await queries.script(() => sql)
      return plan
    })
  } catch (error) {
    throw toEngineError(error, 'migrating')
  }
}

/** Throws ERR_SCHEMA_NEWER. */
export async function assertNotMigrated(database: Database): Promise<void> {
  const [versions = NO_VERSIONS] = await database.rows<StoredVersions>(READ_VERSIONS)
  assertNotNewer(versions, SCHEMA_VERSION)
}

export async function assertCurrent(database: Database): Promise<void> {
  const versions = await versionsOn(await lookAtServer(database), database)
  if (!isBehind(versions, SCHEMA_VERSION)) return
  throw new EngineError(
    'ERR_SCHEMA_MISSING',
    `schema '${database.names.schema}' has version ${versions.applied} of Millrace's tables, this Millrace needs ${SCHEMA_VERSION}; run 'millrace migrate', Postgres is never migrated by opening it`,
  )
}

/** A table older than Millrace may have ids and payloads of another type. Statements adapt to them. */
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

/** How often the version is checked while the engine is in use. A worker that waits looks sooner, and hears of it then. */
const LOOK_MS = 1_300

/**
 * Notices that a newer Millrace migrated the schema while this one runs. The check runs beside the calls, so that none
 * waits for it; its result applies to later calls.
 */
export class SchemaWatch {
  readonly #clock: Clock
  readonly #look: () => Promise<void>
  #lookedMs: number
  #isLooking = false
  #newer: MillraceError | null = null

  /** `look` rejects with ERR_SCHEMA_NEWER if the schema is newer. */
  constructor(clock: Clock, look: () => Promise<void>) {
    this.#clock = clock
    this.#look = look
    this.#lookedMs = clock.monotonicMs()
  }

  /** Call before starting new work. Throws if the schema is newer. Held jobs may still be settled. */
  assertKnown(): void {
    const nowMs = this.#clock.monotonicMs()
    if (!this.#isLooking && nowMs - this.#lookedMs >= LOOK_MS) {
      this.#lookedMs = nowMs
      void this.#lookNow()
    }
    if (this.#newer !== null) throw this.#newer
  }

  /** The same, before a statement that brings the version along for `saw`. */
  assertKnownSoFar(): void {
    if (this.#newer !== null) this.assertKnown()
  }

  /** The version that a package must know came with the answer to another question. */
  saw({ needed }: Pick<StoredVersions, 'needed'>): void {
    this.#lookedMs = this.#clock.monotonicMs()
    try {
      assertNotNewer({ needed, applied: needed }, SCHEMA_VERSION)
      this.#newer = null
    } catch (error) {
      if (isMillraceError(error)) this.#newer = error
    }
  }

  async #lookNow(): Promise<void> {
    this.#isLooking = true
    try {
      await this.#look()
      this.#newer = null
    } catch (error) {
      // The calls themselves report any other fault.
      if (isMillraceError(error, 'ERR_SCHEMA_NEWER')) this.#newer = error
    } finally {
      this.#isLooking = false
    }
  }
}
