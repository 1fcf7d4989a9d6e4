import { EngineError, UnsupportedError } from '../errors.ts'
import { redactUrl } from '../job/error-record.ts'
import type { Clock } from '../time/clock.ts'
import type { Capabilities } from './capabilities.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Engine } from './engine.ts'
import { refuseOldNode } from './node-version.ts'
import { type PresenceStore, type RememberingPresence, type WithPresence, withPresence } from './presence.ts'

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
  /** Present where heartbeats of workers on other engines can be kept. A store that is down is no error: beats fail until it is back. */
  openPresence?(url: string): Promise<PresenceStore>
}

/** What opening with `migrate` would change. */
export interface MigrationPlan {
  /** 0 for a store that Millrace has never touched. Above `latest` where a newer Millrace migrated and this one can work. */
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

/** The same with a presence beside it: of a URL it is opened and closed with the engine, one of the caller's stays open. */
export async function openWithPresence(
  target: string | object,
  presence: string | RememberingPresence,
  settings: EngineSettings,
): Promise<Engine & WithPresence> {
  if (typeof presence !== 'string') return withPresence(await openEngine(target, settings), presence)
  const own = await openPresence(presence)
  try {
    return withPresence(await openEngine(target, settings), own, () => own.close())
  } catch (error) {
    await own.close()
    throw error
  }
}

/** Where workers are to be found, for mills that share it. */
export async function openPresence(url: string): Promise<PresenceStore> {
  const opening = (await moduleOf(url)).openPresence?.(url)
  if (opening !== undefined) return opening
  throw new UnsupportedError({
    engine: url.split(':')[0] ?? '',
    limit: 'keeps no heartbeats for other engines; give a URL such as redis://127.0.0.1:6379',
  })
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
  /** Those of them that wait for a retry; left out where nobody knows. */
  readonly delayed?: number
}

export interface TopicsOfBroker {
  /** Of the named groups, on each topic that they read. */
  lags(): Promise<readonly TopicLag[]>
  /** Where dead letters of a type go. */
  dlqTopicOf(type: string): string
  /** Those of all groups. An engine has those of its own group. */
  readonly deadLetters: DeadLetters
  /** Unresolved dead letters, by the topic that holds them. */
  pendingByTopic(): Promise<readonly { readonly topic: string; readonly count: number }[]>
  close(): Promise<void>
}
