import type { Admin } from './driver.ts'
import { nameOf, type PartitionName } from './holding.ts'

export interface Committed {
  readonly offset: bigint
  readonly metadata: string | null
}

/** The offset at a time, or -1n for the end of the log and -2n for its start; by the name of the partition. */
export async function offsetsOf(
  admin: Admin,
  partitions: readonly PartitionName[],
  timestamp: bigint,
): Promise<ReadonlyMap<string, bigint>> {
  const offsets = new Map<string, bigint>()
  if (partitions.length === 0) return offsets
  const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, members]) => ({
    name,
    partitions: members.map(({ partition }) => ({ partitionIndex: partition, timestamp })),
  }))
  for (const { name, partitions: found } of await admin.listOffsets({ topics }))
    for (const { partitionIndex, offset } of found)
      offsets.set(nameOf({ topic: name, partition: partitionIndex }), offset)
  return offsets
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
