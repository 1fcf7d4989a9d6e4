import type { Admin } from './driver.ts'
import { nameOf, type PartitionName } from './holding.ts'

export interface Committed {
  readonly offset: bigint
  readonly metadata: string | null
}

interface ListedPlace extends PartitionName {
  readonly offset: bigint
  readonly timestamp: bigint
}

/** The offset at a time, or -1n for the end of the log and -2n for its start; by the name of the partition. */
export async function offsetsOf(
  admin: Admin,
  partitions: readonly PartitionName[],
  timestamp: bigint,
): Promise<ReadonlyMap<string, bigint>> {
  const listed = await listOffsets(admin, partitions, timestamp)
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
): Promise<readonly ListedPlace[]> {
  if (partitions.length === 0) return []
  const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, members]) => ({
    name,
    partitions: members.map(({ partition }) => ({ partitionIndex: partition, timestamp })),
  }))
  return (await admin.listOffsets({ topics })).flatMap(({ name, partitions: found }) =>
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
