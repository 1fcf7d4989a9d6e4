/**
 * A process that migrates a store to the present schema: `migrator.ts <url> [version]`. With a version it does not get
 * beyond the migration before that one: on SQLite it kills itself there, and on Postgres it waits for a lock, to be killed.
 */
import { DatabaseSync } from 'node:sqlite'
import { applyMigrations } from '../../src/engine/open.ts'
import * as postgres from '../../src/engines/postgres/migrations.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { Connection } from '../../src/engines/sqlite/database.ts'
import * as sqlite from '../../src/engines/sqlite/migrate.ts'
import { MIGRATIONS } from '../../src/engines/sqlite/migrations.ts'
import { systemClock } from '../../src/time/clock.ts'

const [url = '', stopAt] = process.argv.slice(2)
const settings = { clock: systemClock, migrate: true }
const version = Number(stopAt)

if (stopAt === undefined) await applyMigrations(url, settings)
else if (url.startsWith('sqlite:')) killedOnSqlite()
else await waitsOnPostgres()

function killedOnSqlite(): void {
  const database = new DatabaseSync(url.slice('sqlite:'.length))
  const die = (): never => {
    process.kill(process.pid, 'SIGKILL')
    for (;;);
  }
  const end = { version, name: 'the-end', statements: die }
  database.exec('BEGIN IMMEDIATE')
  const before = MIGRATIONS.filter((migration) => migration.version < version)
  sqlite.applyMigrations(new Connection(database), systemClock.nowMs(), [...before, end])
}

async function waitsOnPostgres(): Promise<void> {
  const end = { version, name: 'the-end', sql: () => `SELECT pg_advisory_lock(${version});` }
  const before = postgres.MIGRATIONS.filter((migration) => migration.version < version)
  await migrate(url, settings, [...before, end])
}
