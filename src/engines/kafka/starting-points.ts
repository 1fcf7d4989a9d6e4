import { EngineError } from '../../errors.ts'
import type { Admin } from './driver.ts'
import { nameOf, type PartitionName } from './holding.ts'
import { committedOf, isFor, offsetsOf, topicIdsOf } from './offsets.ts'
import { WINDOW_MAX } from './watermark.ts'

/** Where the next owner of a partition goes on. */
export interface StartingPoint {
  readonly offset: bigint
  readonly metadata: string | null
  readonly topicId: string
  /** The first offset that the log still has. */
  readonly start: bigint
  /** Nobody has committed anything of this topic yet. */
  readonly isFirst: boolean
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
  group: string,
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
      const isRecreated = found !== undefined
      points.set(name, { ...firstPointOf(topicId, start), isRecreated })
      continue
    }
    const { offset, metadata } = found
    const far = offset + DOUBTFUL_MAX
    const doubtfulBelow = end < far ? end : far
    points.set(name, { offset, metadata, topicId, start, isFirst: false, isRecreated: false, doubtfulBelow })
  }
  return points
}

/** From the first record that is left, whatever was done before. */
export function firstPointOf(topicId: string, start: bigint): StartingPoint {
  return { offset: start, metadata: null, topicId, start, isFirst: true, isRecreated: false, doubtfulBelow: start }
}
