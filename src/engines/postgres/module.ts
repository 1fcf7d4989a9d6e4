import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings, MigrationPlan } from '../../engine/open.ts'
import { connectionsOf } from './connections.ts'
import { Database } from './database.ts'
import { isClient, isPool } from './driver.ts'
import { CAPABILITIES, PostgresEngine } from './engine.ts'
import { toEngineError } from './faults.ts'
import { applyMigrations, planMigrationsOf } from './migrate.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'
import { namesIn } from './names.ts'
import { parseUrl, withParameters } from './options.ts'

/** `postgres://user:password@host:5432/database?schema=public`. */
export async function connect(url: string, settings: EngineSettings): Promise<Engine> {
  const address = parseUrl(url)
  return PostgresEngine.connect({ address }, settings, { ...address, threadUrl: threadUrlOf(url, address.answerMs) })
}

/** A renewal is one short statement. Waiting longer on a dead connection would lose the leases. */
const RENEW_MS = 5_000

/** The renewal thread sends one statement at a time and needs no LISTEN. */
export function threadUrlOf(text: string, answerMs: number): string {
  return withParameters(text, { pool: '1', listen: 'false', timeout: String(Math.min(answerMs, RENEW_MS)) })
}

export function connectHandle(handle: object, settings: EngineSettings): Promise<Engine> | null {
  if (isPool(handle)) return PostgresEngine.connect({ pool: handle }, settings)
  return isClient(handle) ? PostgresEngine.connect({ client: handle }, settings) : null
}

export function capabilitiesOf(): Capabilities {
  return CAPABILITIES
}

/** What `migrate` would run. The database is only read. */
export function planMigrations(url: string, settings: EngineSettings): Promise<MigrationPlan> {
  return withDatabase(url, settings, planMigrationsOf)
}

/** Creates or upgrades the tables, grants a worker's rights to the role in `?grant=`, and returns what it ran. */
export function migrate(
  url: string,
  settings: EngineSettings,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<MigrationPlan> {
  return withDatabase(url, settings, (database, grant) => applyMigrations(database, { grant, migrations }))
}

/** Creating an index on a big table may take long. */
const MIGRATE_MS = 3_600_000

async function withDatabase<Value>(
  url: string,
  { clock }: EngineSettings,
  run: (database: Database, grant: string | null) => Promise<Value>,
): Promise<Value> {
  const address = parseUrl(url)
  const { source } = await connectionsOf({ address: { ...address, pool: 1, answerMs: MIGRATE_MS } })
  const database = new Database({ source, names: namesIn(address.schema), clock, prepare: false, answerMs: MIGRATE_MS })
  try {
    await database.reach()
    return await run(database, address.grant)
  } catch (error) {
    throw toEngineError(error, 'migrating')
  } finally {
    await database.close()
  }
}
