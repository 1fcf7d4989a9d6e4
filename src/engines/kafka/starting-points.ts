import type { Admin } from './driver.ts'
import { nameOf, type PartitionName } from './holding.ts'
import { committedOf, offsetsOf } from './offsets.ts'
import { WINDOW_MAX } from './watermark.ts'

/** Where the next owner of a partition goes on. */
export interface StartingPoint {
  readonly offset: bigint
  readonly metadata: string | null
  /** The first offset that the log still has. */
  readonly start: bigint
  /** Nobody has committed anything yet. */
  readonly isFirst: boolean
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
  const [committed, starts, ends] = await Promise.all([
    committedOf(admin, group, partitions),
    offsetsOf(admin, partitions, -2n),
    offsetsOf(admin, partitions, -1n),
  ])
  const points = new Map<string, StartingPoint>()
  for (const partition of partitions) {
    const name = nameOf(partition)
    const start = starts.get(name) ?? 0n
    const end = ends.get(name) ?? start
    const found = committed.get(name)
    if (found === undefined) {
      points.set(name, { offset: start, metadata: null, start, isFirst: true, doubtfulBelow: start })
      continue
    }
    const { offset, metadata } = found
    const far = offset + DOUBTFUL_MAX
    points.set(name, { offset, metadata, start, isFirst: false, doubtfulBelow: end < far ? end : far })
  }
  return points
}
