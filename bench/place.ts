/** Places for data: a folder each and, where the family has a server, an empty database. */
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Place } from './contender.ts'
import { createDatabase, databaseOf, dropDatabase } from './servers/postgres.ts'

export async function newPlace(root: string, serverUrl: string | null): Promise<Place> {
  const dir = await mkdtemp(join(root, 'place-'))
  return { dir, url: serverUrl === null ? null : await createDatabase(serverUrl, 'bench') }
}

/** A place of its own that goes when `place` does. */
export async function placeWithin(place: Place): Promise<Place> {
  const dir = await mkdtemp(join(place.dir, 'place-'))
  return { dir, url: place.url === null ? null : await createDatabase(place.url, databaseOf(place.url)) }
}

export async function removePlace(place: Place): Promise<void> {
  await rm(place.dir, { recursive: true, force: true })
  if (place.url !== null) await dropDatabase(place.url)
}
