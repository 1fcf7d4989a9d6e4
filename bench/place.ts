/** Places for data: a folder each and, where the family has a server, an empty database, prefix or topic. */
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Place } from './contender.ts'
import { createTopicAndGroup, groupOf, removeTopics } from './servers/kafka.ts'
import { createDatabase, databaseOf, dropDatabase } from './servers/postgres.ts'
import { createPrefix, prefixOf, removePrefix } from './servers/redis.ts'

export async function newPlace(root: string, serverUrl: string | null): Promise<Place> {
  const dir = await mkdtemp(join(root, 'place-'))
  return { dir, url: serverUrl === null ? null : await storeOf(serverUrl).create(serverUrl, 'bench') }
}

/** A place of its own that goes when `place` does. */
export async function placeWithin(place: Place): Promise<Place> {
  const dir = await mkdtemp(join(place.dir, 'place-'))
  if (place.url === null) return { dir, url: null }
  const { create, nameOf } = storeOf(place.url)
  return { dir, url: await create(place.url, nameOf(place.url)) }
}

export async function removePlace(place: Place): Promise<void> {
  await rm(place.dir, { recursive: true, force: true })
  if (place.url !== null) await storeOf(place.url).remove(place.url)
}

/** How a server is divided. What was created with the name of another goes with that one. */
interface Store {
  create(url: string, name: string): Promise<string>
  nameOf(url: string): string
  remove(url: string): Promise<void>
}

const DATABASES: Store = { create: createDatabase, nameOf: databaseOf, remove: dropDatabase }
const PREFIXES: Store = { create: createPrefix, nameOf: prefixOf, remove: removePrefix }

const TOPICS: Store = { create: createTopicAndGroup, nameOf: groupOf, remove: removeTopics }

function storeOf(url: string): Store {
  if (url.startsWith('kafka:')) return TOPICS
  return url.startsWith('redis:') ? PREFIXES : DATABASES
}
