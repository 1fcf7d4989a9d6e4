/** Fresh stores that can be given any version of the schema: earlier ones, the present one, and ones still to come. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as postgres from '../../src/engines/postgres/migrations.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { quote } from '../../src/engines/postgres/names.ts'
import type { Versioned } from '../../src/engines/sql/schema-version.ts'
import { Connection } from '../../src/engines/sqlite/database.ts'
import { applyMigrations } from '../../src/engines/sqlite/migrate.ts'
import * as sqlite from '../../src/engines/sqlite/migrations.ts'
import { systemClock } from '../../src/time/clock.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'

/** What comes after the present schema, as a later Millrace would bring it: an addition, and one that needs the addition. */
export interface Later {
  readonly name: string
  /** How many versions after the present one; and the version that it needs, counted in the same way. Null: no more than now. */
  readonly after: number
  readonly needsAfter: number | null
}

export const ADDITION: Later = { name: 'an-addition', after: 1, needsAfter: null }
export const REMOVAL: Later = { name: 'a-removal', after: 2, needsAfter: 1 }

export interface Store {
  readonly url: string
  readonly present: number
  /** Brings it to this version, or to the present one and then to the later ones. */
  migrate(to?: number | readonly Later[]): Promise<void>
  /** Several statements. In Postgres, the schema is the search path. */
  execute(sql: string): Promise<void>
  rows<Row>(sql: string): Promise<readonly Row[]>
  remove(): Promise<void>
}

/** A column and a table more: what most additions are. */
const ADDED = (table: string): string =>
  `ALTER TABLE ${table} ADD COLUMN later TEXT DEFAULT 'x'; CREATE INDEX idx_later ON ${table}(later);`

function chosen<Own extends Versioned>(
  all: readonly Own[],
  to: number | readonly Later[],
  make: (later: Later, versioned: Versioned) => Own,
): readonly Own[] {
  if (typeof to === 'number') return all.filter(({ version }) => version <= to)
  return [...all, ...to.map((later) => make(later, versionsOf(later, all)))]
}

function versionsOf({ after, needsAfter }: Later, all: readonly Versioned[]): Versioned {
  const needed = Math.max(...all.map(({ version, needs = version }) => needs))
  return { version: all.length + after, needs: needsAfter === null ? needed : all.length + needsAfter }
}

async function sqliteStore(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-upgrade-'))
  const file = join(folder, 'store.db')
  const on = <Value>(run: (database: DatabaseSync) => Value): Value => {
    const database = new DatabaseSync(file, { timeout: 60_000 })
    try {
      return run(database)
    } finally {
      database.close()
    }
  }
  return {
    url: `sqlite:${file}`,
    present: sqlite.SCHEMA_VERSION,
    async migrate(to = []) {
      const migrations = chosen<sqlite.Migration>(sqlite.MIGRATIONS, to, (later, versions) => ({
        ...{ name: later.name, ...versions },
        statements: () => [later === ADDITION ? ADDED('job_queue') : 'DROP INDEX idx_later'],
      }))
      on((database) => {
        database.exec('BEGIN IMMEDIATE')
        applyMigrations(new Connection(database), systemClock.nowMs(), migrations)
        database.exec('COMMIT')
      })
    },
    execute: async (sql) => on((database) => database.exec(sql)),
    rows: async <Row>(sql: string) => on((database) => database.prepare(sql).all() as Row[]),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

async function postgresStore(): Promise<Store> {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  const inSchema = new URL(server.url)
  inSchema.searchParams.set('options', `-c search_path=${schema}`)
  return {
    url,
    present: postgres.SCHEMA_VERSION,
    async migrate(to = []) {
      const migrations = chosen<postgres.Migration>(postgres.MIGRATIONS, to, (later, versions) => ({
        ...{ name: later.name, ...versions },
        sql: ({ jobs }) => (later === ADDITION ? ADDED(jobs) : `DROP INDEX ${quote(schema)}.idx_later;`),
      }))
      await migrate(url, { clock: systemClock, migrate: true }, migrations)
    },
    execute: async (sql) => void (await query(server.url, `SET search_path = ${schema};\n${sql}`)),
    rows: <Row>(sql: string) => query<Row>(inSchema.href, sql),
    remove: () => dropSchema(server.url, schema),
  }
}

/** `for (const { name, makeStore } of STORES) describe(name, …)` */
export const STORES = [
  { name: 'SQLite', makeStore: sqliteStore },
  { name: 'Postgres', makeStore: postgresStore },
] as const
