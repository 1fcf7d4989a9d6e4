import { EngineError } from '../../errors.ts'
import { decodeProgress } from './commit-metadata.ts'
import type { Admin } from './driver.ts'
import type { Isolation, KafkaOptions } from './options.ts'
import { nameOf, type PartitionName } from './record.ts'
import { WINDOW_MAX } from './watermark.ts'

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

/** Where the next owner of a partition goes on. */
export interface StartingPoint {
  readonly offset: bigint
  readonly metadata: string | null
  readonly topicId: string
  /** The first offset that the log still has. */
  readonly start: bigint
  /**
   * The group has no commit for this topic, or the owner before has said that all its starts are told. Before anything is
   * started that has to be committed over: should we die, the next owner could not know that we had begun.
   */
  readonly isUntouched: boolean
  /** What is committed belongs to a topic of the same name that was deleted. */
  readonly isRecreated: boolean
  /**
   * Records below may have been started by an owner that died before it could say so: what they have run is stored
   * before they run again, or one that kills its process would do so for ever.
   */
  readonly doubtfulBelow: bigint
}

/** An owner reads a window ahead of its commit, and commits what it has done a moment later. */
const DOUBTFUL_MAX = BigInt(4 * WINDOW_MAX)

/** By the name of the partition. */
export async function startingPointsOf(
  admin: Admin,
  { group, from }: Pick<KafkaOptions, 'group' | 'from'>,
  partitions: readonly PartitionName[],
): Promise<ReadonlyMap<string, StartingPoint>> {
  const topics = partitions.map(({ topic }) => topic)
  const ids = await topicIdsOf(admin, topics)
  const [committed, starts, ends] = await Promise.all([
    committedOf(admin, group, partitions),
    offsetsOf(admin, partitions, -2n),
    offsetsOf(admin, partitions, -1n),
  ])
  const idsAfter = await topicIdsOf(admin, topics)
  const points = new Map<string, StartingPoint>()
  for (const partition of partitions) {
    const name = nameOf(partition)
    const topicId = ids.get(partition.topic)
    if (topicId === undefined || idsAfter.get(partition.topic) !== topicId)
      throw new EngineError(
        'ERR_STORAGE_BUSY',
        `${partition.topic} was created again just now; looking at it once more`,
      )
    const start = starts.get(name) ?? 0n
    const end = ends.get(name) ?? start
    const found = committed.get(name)
    if (found === undefined || !isFor(found, topicId)) {
      // What is in a topic that was created again came while the group was reading it, so nothing of it is passed over.
      const isRecreated = found !== undefined
      const first = from === 'latest' && !isRecreated ? end : start
      points.set(name, { ...firstPointOf(topicId, first), isRecreated })
      continue
    }
    const { offset, metadata } = found
    const told = decodeProgress(Number(offset), metadata).doubtfulBelow ?? null
    const far = told === null ? offset + DOUBTFUL_MAX : BigInt(told)
    const doubtfulBelow = end < far ? end : far
    const isUntouched = told !== null
    points.set(name, { offset, metadata, topicId, start, isUntouched, isRecreated: false, doubtfulBelow })
  }
  return points
}

/** From the first record that is left, whatever was done before. */
export function firstPointOf(topicId: string, start: bigint): StartingPoint {
  return { offset: start, metadata: null, topicId, start, isUntouched: true, isRecreated: false, doubtfulBelow: start }
}
