import type { KnownWorker } from '../../engine/engine.ts'
import type { Admin } from './driver.ts'
import { type GroupPlaceParts, placesOf } from './group-places.ts'
import { nameOf, type PartitionName } from './record.ts'

/** What a member of ours calls itself towards the broker, before the id of its worker. */
const OURS = 'millrace:'

export function clientIdOf(worker: string): string {
  return OURS + worker
}

interface Member {
  readonly id: string
  readonly host: string
  readonly topics: readonly string[]
  readonly partitions: readonly PartitionName[]
}

/** The members of the group that read topics with our prefix. One of another program goes by the id that the broker gave it. */
export async function membersOf(
  admin: Admin,
  { group, prefix }: Pick<GroupPlaceParts, 'group' | 'prefix'>,
): Promise<readonly Member[]> {
  const described = (await admin.describeGroups({ groups: [group] })).get(group)
  return [...(described?.members.values() ?? [])].flatMap(({ id, clientId, clientHost, metadata, assignments }) => {
    const topics = (metadata?.topics ?? []).filter((topic) => topic.startsWith(prefix))
    if (topics.length === 0) return []
    const partitions = [...(assignments?.values() ?? [])].flatMap((assigned) =>
      assigned.partitions.map((partition) => ({ topic: assigned.topic, partition })),
    )
    const own = clientId.startsWith(OURS) ? clientId.slice(OURS.length) : id
    return [{ id: own, host: clientHost.replace(/^\//, ''), topics, partitions }]
  })
}

/** By the name of the partition. */
export function holdersOf(members: readonly Member[]): ReadonlyMap<string, string> {
  return new Map(members.flatMap(({ id, partitions }) => partitions.map((place) => [nameOf(place), id] as const)))
}

/** With what each holds, and how far it is behind there. */
export async function workersOf(admin: Admin, parts: GroupPlaceParts): Promise<readonly KnownWorker[]> {
  const { prefix } = parts
  const members = await membersOf(admin, parts)
  if (members.length === 0) return []
  const read = members.flatMap(({ topics }) => topics)
  const { places } = await placesOf(admin, { ...parts, topics: [...parts.topics, ...read] })
  const lags = new Map(places.map((place) => [nameOf(place), Math.max(0, place.end - place.position)]))
  const lagOf = (topic: string): number =>
    places.reduce((sum, place) => sum + (place.topic === topic ? (lags.get(nameOf(place)) ?? 0) : 0), 0)
  return members.map(({ id, host, topics, partitions }) => ({
    ...{ id, host, types: topics.map((topic) => topic.slice(prefix.length)) },
    lags: Object.fromEntries(topics.map((topic) => [topic.slice(prefix.length), lagOf(topic)])),
    holds: partitions
      .filter(({ topic }) => topic.startsWith(prefix))
      .map((place) => ({
        type: place.topic.slice(prefix.length),
        partition: place.partition,
        lag: lags.get(nameOf(place)) ?? 0,
      }))
      .sort((one, other) =>
        one.type === other.type ? one.partition - other.partition : one.type < other.type ? -1 : 1,
      ),
  }))
}
