export type Severity = 'WARNING' | 'CRITICAL'

/** How far a group may fall behind on a topic. */
export interface LagLimits {
  readonly warning: number
  readonly critical: number
}

/** One partition of a topic, as one group has committed it. */
export interface PartitionOffsets {
  readonly begin: bigint
  readonly end: bigint
  /** Null where the group has never committed. */
  readonly committed: bigint | null
}

/**
 * The records that a group has before it, over all partitions of a topic (X162). A group that has never committed has
 * all of them before it (X163); what retention has deleted it can no longer read.
 *
 * @example
 * consumerLag([{ begin: 0n, end: 7n, committed: 2n }]) // 5
 */
export function consumerLag(partitions: readonly PartitionOffsets[]): number {
  return partitions.reduce((sum, { begin, end, committed }) => {
    const next = committed === null || committed < begin ? begin : committed
    return sum + Math.max(0, Number(end - next))
  }, 0)
}

/** Above a limit, not at it. */
export function lagSeverity(lag: number, { warning, critical }: LagLimits): Severity | null {
  if (lag > critical) return 'CRITICAL'
  return lag > warning ? 'WARNING' : null
}
