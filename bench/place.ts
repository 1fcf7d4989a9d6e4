/** Places for data: a folder each and, where the family has a server, an empty database, prefix or topic. */
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Place } from './contender.ts'

export async function newPlace(root: string, serverUrl: string | null): Promise<Place> {
  const dir = await mkdtemp(join(root, 'place-'))
  return { dir, url: serverUrl === null ? null : await (await storeOf(serverUrl)).create(serverUrl, 'bench') }
}

/** A place of its own that goes when `place` does. */
export async function placeWithin(place: Place): Promise<Place> {
  const dir = await mkdtemp(join(place.dir, 'place-'))
  if (place.url === null) return { dir, url: null }
  const { create, nameOf } = await storeOf(place.url)
  return { dir, url: await create(place.url, nameOf(place.url)) }
}

export async function removePlace(place: Place): Promise<void> {
  await rm(place.dir, { recursive: true, force: true })
  if (place.url !== null) await (await storeOf(place.url)).remove(place.url)
}

/** How a server is divided. What was created with the name of another goes with that one. */
interface Store {
  create(url: string, name: string): Promise<string>
  nameOf(url: string): string
  remove(url: string): Promise<void>
}

/** Loads the client of that server alone: every measuring process gets here, and its memory is measured. */
async function storeOf(url: string): Promise<Store> {
  if (url.startsWith('kafka:')) {
    const { createTopicAndGroup, groupOf, removeTopics } = await import('./servers/kafka.ts')
    return { create: createTopicAndGroup, nameOf: groupOf, remove: removeTopics }
  }
  if (url.startsWith('redis:')) {
    const { createPrefix, prefixOf, removePrefix } = await import('./servers/redis.ts')
    return { create: createPrefix, nameOf: prefixOf, remove: removePrefix }
  }
  const { createDatabase, databaseOf, dropDatabase } = await import('./servers/postgres.ts')
  return { create: createDatabase, nameOf: databaseOf, remove: dropDatabase }
}
