import { EngineError, UnsupportedError } from '../errors.ts'
import { redactUrl } from '../job/error-record.ts'
import type { Clock } from '../time/clock.ts'
import type { Capabilities } from './capabilities.ts'
import type { Engine } from './engine.ts'
import { refuseOldNode } from './node-version.ts'

/** What every engine is given when it is opened by URL or by a user's own handle. */
export interface EngineSettings {
  readonly clock: Clock
  /** SQLite creates and migrates its file unless this is false. Postgres is migrated by `migrate` alone, never by opening. */
  readonly migrate: boolean
}

/** What an engine's module offers to `open`. */
export interface EngineModule {
  /** Rejects with `ERR_ENGINE_URL` for a malformed URL. Leaves nothing open when it rejects. */
  connect(url: string, settings: EngineSettings): Promise<Engine>
  /** The same over a handle of the user's own; null when the object is not one. */
  connectHandle?(handle: object, settings: EngineSettings): Promise<Engine> | null
  /** What an engine of this URL can do, known before it is reached. */
  capabilitiesOf(url: string): Capabilities
  /** Present where the engine has a schema. Looks only: a store that is not there yet is not created. */
  planMigrations?(url: string, settings: EngineSettings): Promise<MigrationPlan>
  /** Present where opening never migrates. Brings the schema to the present version and tells what it did; repeating is harmless. */
  migrate?(url: string, settings: EngineSettings): Promise<MigrationPlan>
  /** Present where queues are topics of a broker. `groups` are those whose lag is told; that of the URL unless given. */
  openTopics?(
    url: string,
    options: { readonly clock: Clock; readonly groups?: readonly string[] },
  ): Promise<TopicsOfBroker>
}

/** What opening with `migrate` would change. Nothing is pending when `version` is `latest`. */
export interface MigrationPlan {
  /** 0 for a store that Millrace has never touched. */
  readonly version: number
  readonly latest: number
  readonly pending: readonly { readonly name: string; readonly sql: string }[]
}

/** Imported only when used, so that nobody loads a database client that they do not need. */
const MODULES: Readonly<Record<string, () => Promise<EngineModule>>> = {
  memory: () => import('../engines/memory/module.ts'),
  sqlite: () => import('../engines/sqlite/module.ts'),
  postgres: () => import('../engines/postgres/module.ts'),
  postgresql: () => import('../engines/postgres/module.ts'),
  redis: () => import('../engines/redis/module.ts'),
  rediss: () => import('../engines/redis/module.ts'),
  'redis+cluster': () => import('../engines/redis/module.ts'),
  'rediss+cluster': () => import('../engines/redis/module.ts'),
  'redis+sentinel': () => import('../engines/redis/module.ts'),
  'rediss+sentinel': () => import('../engines/redis/module.ts'),
  kafka: () => import('../engines/kafka/module.ts'),
  kafkas: () => import('../engines/kafka/module.ts'),
}

const URL_EXAMPLES = 'sqlite:./millrace.db, postgres://…, redis://…, kafka://… or memory:'

export const ENGINE_SCHEMES: readonly string[] = Object.keys(MODULES)

/** Turns a URL, an engine or a user's own handle into an open engine. */
export async function openEngine(target: string | object, settings: EngineSettings): Promise<Engine> {
  refuseOldNode()
  if (typeof target !== 'string') return fromObject(target, settings)
  return (await moduleOf(target)).connect(target, settings)
}

export async function capabilitiesOf(url: string): Promise<Capabilities> {
  return (await moduleOf(url)).capabilitiesOf(url)
}

/** What the schema is and what is missing of it; null where the engine has none. */
export async function planMigrations(url: string, settings: EngineSettings): Promise<MigrationPlan | null> {
  const module = await moduleOf(url)
  return module.planMigrations === undefined ? null : module.planMigrations(url, settings)
}

/** Creates or upgrades the store's schema: where opening does that, by opening. What was done comes back; null where there is none. */
export async function applyMigrations(url: string, settings: EngineSettings): Promise<MigrationPlan | null> {
  const module = await moduleOf(url)
  if (module.migrate !== undefined) return module.migrate(url, settings)
  const plan = await planMigrations(url, settings)
  if (plan !== null) await (await openEngine(url, { ...settings, migrate: true })).close()
  return plan
}

/** Null where queues are no topics. */
export async function openTopics(
  url: string,
  options: { readonly clock: Clock; readonly groups?: readonly string[] },
): Promise<TopicsOfBroker | null> {
  return (await (await moduleOf(url)).openTopics?.(url, options)) ?? null
}

async function moduleOf(url: string): Promise<EngineModule> {
  const scheme = /^([a-z][a-z0-9+]*):/.exec(url)?.[1]
  const load = scheme !== undefined && Object.hasOwn(MODULES, scheme) ? MODULES[scheme] : undefined
  if (load === undefined) {
    throw new EngineError('ERR_ENGINE_URL', `'${redactUrl(url)}' names no engine; give a URL such as ${URL_EXAMPLES}`)
  }
  return load()
}

async function fromObject(target: object | null | undefined, settings: EngineSettings): Promise<Engine> {
  if (typeof target !== 'object' || target === null) {
    throw new EngineError('ERR_ENGINE_URL', `${target} is not a URL; give one such as ${URL_EXAMPLES}`)
  }
  if (isEngine(target)) return target
  for (const load of Object.values(MODULES)) {
    const connecting = (await load()).connectHandle?.(target, settings) ?? null
    if (connecting !== null) return connecting
  }
  throw new UnsupportedError({
    engine: 'given',
    limit: 'is neither an engine nor a database handle that Millrace knows; pass a URL',
  })
}

function isEngine(target: object): target is Engine {
  return 'consume' in target && 'enqueue' in target && 'capabilities' in target
}

/** What operators see of a broker whose queues are topics. It covers the groups of other programs too. */

/** How many records a group has yet to settle in a topic. */
export interface TopicLag {
  readonly group: string
  readonly topic: string
  readonly lag: number
}

export interface TopicsOfBroker {
  /** Of the named groups, on each topic that they read. */
  lags(): Promise<readonly TopicLag[]>
  /** Unresolved dead letters, by the topic that holds them. */
  pendingByTopic(): Promise<readonly { readonly topic: string; readonly count: number }[]>
  close(): Promise<void>
}
