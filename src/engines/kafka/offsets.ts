import type { Admin } from './driver.ts'
import { nameOf, type PartitionName } from './holding.ts'
import type { Isolation } from './options.ts'
import { decodeProgress } from './progress.ts'

export interface Committed {
  readonly offset: bigint
  readonly metadata: string | null
}

/**
 * Whether it was committed for the topic with this id. Kafka keeps commits by the topic's name, and a member that has not
 * noticed that its topic was deleted and created again still commits offsets of the old one. A commit that names no topic
 * is one of another program or an earlier version, and counts.
 */
export function isFor({ offset, metadata }: Committed, topicId: string | undefined): boolean {
  const named = decodeProgress(Number(offset), metadata).topicId ?? null
  return named === null || topicId === undefined || named === topicId
}

/** By name; those that are not there are missing. */
export async function topicIdsOf(admin: Admin, names: Iterable<string>): Promise<ReadonlyMap<string, string>> {
  const topics = [...new Set(names)]
  if (topics.length === 0) return new Map()
  const { topics: found } = await admin.metadata({ topics, forceUpdate: true })
  return new Map([...found].map(([name, { id }]) => [name, id]))
}

interface ListedPlace extends PartitionName {
  readonly offset: bigint
  readonly timestamp: bigint
}

/**
 * The offset at a time, or -1n for the end of the log and -2n for its start; by the name of the partition. To who reads the
 * committed, the log ends where the first open transaction begins.
 */
export async function offsetsOf(
  admin: Admin,
  partitions: readonly PartitionName[],
  timestamp: bigint,
  isolation: Isolation = 'read_uncommitted',
): Promise<ReadonlyMap<string, bigint>> {
  const listed = await listOffsets(admin, partitions, timestamp, isolation)
  return new Map(listed.map((place) => [nameOf(place), place.offset]))
}

const NEWEST = -3n

/** By the name of the partition, the time of its newest record; none for an empty one. */
export async function newestOf(
  admin: Admin,
  partitions: readonly PartitionName[],
): Promise<ReadonlyMap<string, number>> {
  const listed = await listOffsets(admin, partitions, NEWEST)
  const dated = listed.filter(({ offset }) => offset >= 0n)
  return new Map(dated.map((place) => [nameOf(place), Number(place.timestamp)]))
}

async function listOffsets(
  admin: Admin,
  partitions: readonly PartitionName[],
  timestamp: bigint,
  isolation: Isolation = 'read_uncommitted',
): Promise<readonly ListedPlace[]> {
  if (partitions.length === 0) return []
  const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, members]) => ({
    name,
    partitions: members.map(({ partition }) => ({ partitionIndex: partition, timestamp })),
  }))
  const isolationLevel = isolation === 'read_committed' ? 1 : 0
  return (await admin.listOffsets({ topics, isolationLevel })).flatMap(({ name, partitions: found }) =>
    found.map((place) => ({ ...place, topic: name, partition: place.partitionIndex })),
  )
}

/** What the group has committed; partitions without a commit are missing. All that it has, unless some are given. */
export async function committedOf(
  admin: Admin,
  group: string,
  partitions?: readonly PartitionName[],
): Promise<ReadonlyMap<string, Committed & PartitionName>> {
  const topics =
    partitions &&
    [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, members]) => ({
      name,
      partitionIndexes: members.map(({ partition }) => partition),
    }))
  const groups = await admin.listConsumerGroupOffsets({
    groups: [topics === undefined ? group : { groupId: group, topics }],
  })
  const committed = new Map<string, Committed & PartitionName>()
  for (const { topics: found } of groups)
    for (const { name, partitions: members } of found)
      for (const { partitionIndex, committedOffset, metadata } of members) {
        if (committedOffset < 0n) continue
        const place = { topic: name, partition: partitionIndex }
        committed.set(nameOf(place), { ...place, offset: committedOffset, metadata: metadata ?? null })
      }
  return committed
}
