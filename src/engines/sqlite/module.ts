import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings, MigrationPlan } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import { isSqliteDatabase } from './database.ts'
import { CAPABILITIES, SqliteEngine, type SqliteOptions } from './engine.ts'
import { planMigrationsOf } from './migrate.ts'

const FORM = `give 'sqlite:./file.db', optionally with '?synchronous=full' (the default) or '?synchronous=normal'`

/** `sqlite:./file.db`, `sqlite:/absolute/file.db` or `sqlite::memory:`. */
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

function parseUrl(url: string): SqliteOptions & { readonly database: string } {
  const [path = '', query = ''] = url.slice('sqlite:'.length).split('?', 2)
  const parameters = new URLSearchParams(query)
  const unknown = [...parameters.keys()].filter((name) => name !== 'synchronous')
  const synchronous = parameters.get('synchronous') ?? 'full'
  if (path === '' || unknown.length > 0 || (synchronous !== 'full' && synchronous !== 'normal')) {
    throw new EngineError('ERR_ENGINE_URL', `'${url}' is not a database URL; ${FORM}`)
  }
  return { database: decodeURI(path.replace(/^\/\/(?=\/)/, '')), synchronous }
}
