import type { Clock } from '../../time/clock.ts'
import { type Client, isKafkaError } from './driver.ts'
import type { GroupCalls } from './group-calls.ts'
import type { Epoch, Holding } from './holding.ts'

/** How long a settled record may stay uncommitted: what a crash can repeat at most. */
export const COMMIT_MS = 100
/** A broker that has not taken a commit for so long may be away, or we from it. */
const STUCK_MS = 1_000

interface CommitParts {
  readonly client: Client
  readonly calls: Pick<GroupCalls, 'call'>
  readonly group: string
  readonly clock: Clock
  /** The broker does not know this membership any more. */
  onFenced(epoch: Epoch): void
  /** It was stuck, and is not any more. */
  onFreed(): void
  onError(error: unknown): void
}

interface CommittedTopic {
  readonly name: string
  readonly partitions: {
    readonly partitionIndex: number
    readonly committedOffset: bigint
    readonly committedLeaderEpoch: number
    readonly committedMetadata: string
  }[]
}

/**
 * Commits the positions of partitions with their metadata, under the membership that they were assigned in. The
 * client's own commit would rejoin and try again as a new member, and so overwrite what the present owner has done.
 */
export class Commits {
  readonly #parts: CommitParts
  readonly #dirty = new Set<Holding>()
  #cancelTimer: (() => void) | null = null
  #isStopped = false
  /** Since when something has been marked that is not committed. */
  #sinceMs: number | null = null
  #last: Promise<void> = Promise.resolve()

  constructor(parts: CommitParts) {
    this.#parts = parts
  }

  /**
   * What is settled cannot be committed. Nothing more should be started: until our session is over it would all be
   * done, and then be done again by whoever gets the partition.
   */
  get isStuck(): boolean {
    return this.#sinceMs !== null && this.#parts.clock.monotonicMs() - this.#sinceMs > STUCK_MS
  }

  /** It has changed: committed within COMMIT_MS. */
  mark(holding: Holding): void {
    holding.isDirty = true
    if (this.#isStopped) return
    this.#dirty.add(holding)
    this.#sinceMs ??= this.#parts.clock.monotonicMs()
    this.#cancelTimer ??= this.#parts.clock.after(COMMIT_MS, () => void this.flush().catch(() => {}))
  }

  /** Commits everything that has changed, after what is under way. Never rejects: what failed stays marked. */
  flush(): Promise<void> {
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#last = this.#last.then(() => this.#flushNow())
    return this.#last
  }

  /** Commits these after what is under way, so that nothing older lands on them; rejects when the broker refuses. */
  commit(holdings: readonly Holding[]): Promise<void> {
    const committing = this.#last.then(() => this.#commit(holdings))
    this.#last = committing.catch(() => {})
    return committing
  }

  async #commit(holdings: readonly Holding[]): Promise<void> {
    const { client, calls, group } = this.#parts
    for (const [epoch, members] of byEpoch(holdings.filter(({ isLost }) => !isLost))) {
      for (const holding of members) holding.isDirty = false
      try {
        const topics = topicsOf(members)
        await calls.call('OffsetCommit', group, epoch.generationId, epoch.memberId, null, topics)
      } catch (error) {
        for (const holding of members) holding.isDirty = true
        if (isKafkaError(client, error, 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID')) this.#parts.onFenced(epoch)
        throw error
      }
    }
  }

  /** Nothing is committed any more unless it is asked for. */
  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#dirty.clear()
  }

  async #flushNow(): Promise<void> {
    const holdings = [...this.#dirty].filter(({ isLost }) => !isLost)
    const beganMs = this.#parts.clock.monotonicMs()
    this.#dirty.clear()
    let isTaken = true
    try {
      if (holdings.length > 0) await this.#commit(holdings)
    } catch (error) {
      isTaken = false
      this.#parts.onError(error)
    }
    const wasStuck = this.isStuck
    // Those that failed, and those that changed meanwhile. What was lost meanwhile is nobody's concern here any more.
    for (const holding of holdings) if (holding.isDirty && !holding.isLost) this.mark(holding)
    if (this.#dirty.size === 0) this.#sinceMs = null
    else if (isTaken) this.#sinceMs = beganMs
    if (wasStuck && !this.isStuck) this.#parts.onFreed()
  }
}

function byEpoch(holdings: readonly Holding[]): ReadonlyMap<Epoch, readonly Holding[]> {
  const groups = new Map<string, [Epoch, Holding[]]>()
  for (const holding of holdings) {
    const name = `${holding.epoch.generationId}/${holding.epoch.memberId}`
    const group = groups.get(name) ?? [holding.epoch, []]
    group[1].push(holding)
    groups.set(name, group)
  }
  return new Map(groups.values())
}

function topicsOf(holdings: readonly Holding[]): CommittedTopic[] {
  const topics = new Map<string, CommittedTopic>()
  for (const { topic, topicId, partition, watermark } of holdings) {
    const committed = topics.get(topic) ?? { name: topic, partitions: [] }
    committed.partitions.push({
      partitionIndex: partition,
      committedOffset: BigInt(watermark.position),
      committedLeaderEpoch: -1,
      committedMetadata: watermark.encode(topicId),
    })
    topics.set(topic, committed)
  }
  return [...topics.values()]
}
