import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings, MigrationPlan } from '../../engine/open.ts'
import { isSqliteDatabase } from './database.ts'
import { CAPABILITIES, SqliteEngine } from './engine.ts'
import { planMigrationsOf } from './migrate.ts'
import { parseUrl } from './url.ts'

export async function connect(url: string, settings: EngineSettings): Promise<Engine> {
  return SqliteEngine.connect(parseUrl(url), settings)
}

export function connectHandle(handle: object, settings: EngineSettings): Promise<Engine> | null {
  return isSqliteDatabase(handle) ? SqliteEngine.connect({ database: handle }, settings) : null
}

export function capabilitiesOf(): Capabilities {
  return CAPABILITIES
}

/** What opening with `migrate` would change. The file is only read, never created. */
export async function planMigrations(url: string): Promise<MigrationPlan> {
  return planMigrationsOf(parseUrl(url).database)
}
