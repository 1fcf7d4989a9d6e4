import { EngineError, type MillraceError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { toEngineError } from './client-faults.ts'
import { METADATA_BYTES_MAX } from './commit-metadata.ts'
import { configsOf, numberOf } from './configs.ts'
import { type Admin, type Client, type GroupCalls, isKafkaError } from './driver.ts'
import { within } from './faults.ts'
import type { Membership, OwnedPartition } from './owned-partition.ts'

/** How long a settled record may stay uncommitted: what a crash can repeat at most. */
export const COMMIT_MS = 100
/** Without a commit for this long, the broker may be unreachable. */
const STUCK_MS = 1_000

interface CommitParts {
  readonly client: Client
  readonly calls: Pick<GroupCalls, 'call'>
  readonly group: string
  readonly clock: Clock
  /** The broker does not know this membership any more. */
  onFenced(membership: Membership): void
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
  readonly #dirty = new Set<OwnedPartition>()
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
   * done, and then done again by the next owner of the partition.
   */
  get isStuck(): boolean {
    return this.#sinceMs !== null && this.#parts.clock.monotonicMs() - this.#sinceMs > STUCK_MS
  }

  /** It has changed: committed within COMMIT_MS. */
  mark(owned: OwnedPartition): void {
    owned.isDirty = true
    if (this.#isStopped) return
    this.#dirty.add(owned)
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
  commit(ownedPartitions: readonly OwnedPartition[]): Promise<void> {
    const committing = this.#last.then(() => this.#commit(ownedPartitions))
    this.#last = committing.catch(() => {})
    return committing
  }

  async #commit(ownedPartitions: readonly OwnedPartition[]): Promise<void> {
    const { client, calls, group } = this.#parts
    for (const [membership, members] of byMembership(ownedPartitions.filter(({ isLost }) => !isLost))) {
      for (const owned of members) owned.isDirty = false
      try {
        const topics = topicsOf(members)
        await calls.call('OffsetCommit', group, membership.generationId, membership.memberId, null, topics)
      } catch (error) {
        for (const owned of members) owned.isDirty = true
        if (isKafkaError(client, error, 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID')) this.#parts.onFenced(membership)
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
    const ownedPartitions = [...this.#dirty].filter(({ isLost }) => !isLost)
    const beganMs = this.#parts.clock.monotonicMs()
    this.#dirty.clear()
    let isTaken = true
    try {
      if (ownedPartitions.length > 0) await this.#commit(ownedPartitions)
    } catch (error) {
      isTaken = false
      this.#parts.onError(error)
    }
    const wasStuck = this.isStuck
    // Those that failed, and those that changed meanwhile. Lost partitions are dropped.
    for (const owned of ownedPartitions) if (owned.isDirty && !owned.isLost) this.mark(owned)
    if (this.#dirty.size === 0) this.#sinceMs = null
    else if (isTaken) this.#sinceMs = beganMs
    if (wasStuck && !this.isStuck) this.#parts.onFreed()
  }
}

function byMembership(ownedPartitions: readonly OwnedPartition[]): ReadonlyMap<Membership, readonly OwnedPartition[]> {
  const groups = new Map<string, [Membership, OwnedPartition[]]>()
  for (const owned of ownedPartitions) {
    const name = `${owned.membership.generationId}/${owned.membership.memberId}`
    const group = groups.get(name) ?? [owned.membership, []]
    group[1].push(owned)
    groups.set(name, group)
  }
  return new Map(groups.values())
}

function topicsOf(ownedPartitions: readonly OwnedPartition[]): CommittedTopic[] {
  const topics = new Map<string, CommittedTopic>()
  for (const { topic, partition, watermark, progress } of ownedPartitions) {
    const committed = topics.get(topic) ?? { name: topic, partitions: [] }
    committed.partitions.push({
      partitionIndex: partition,
      committedOffset: BigInt(watermark.position),
      committedLeaderEpoch: -1,
      committedMetadata: progress,
    })
    topics.set(topic, committed)
  }
  return [...topics.values()]
}

/** How much the brokers let a commit say beside its offset. It holds the progress: see commit-metadata.ts. */

export const METADATA_SETTING = 'offset.metadata.max.bytes'
/** Does not wait for an unreachable broker. */
const ASK_MS = 2_000

export function metadataTooSmall(bytes: number): string {
  return `a broker lets a commit say ${bytes} bytes (${METADATA_SETTING}) and Millrace needs ${METADATA_BYTES_MAX}: commits would be refused`
}

export const METADATA_ADVICE = `Set ${METADATA_SETTING}=${METADATA_BYTES_MAX}, which is Kafka's default, on every broker.`

/** The least that any broker allows; null where none tells. */
export async function metadataBytesMaxOf(admin: Admin, client: Client, clock: Clock): Promise<number | null> {
  const { brokers } = await admin.metadata({ topics: [] })
  const { BROKER } = client.ConfigResourceTypes
  const told = await Promise.all(
    [...brokers.keys()].map(async (id) => {
      const asking = configsOf(admin, BROKER, [String(id)], [METADATA_SETTING])
      const settings = (await within(clock, ASK_MS, asking).catch(() => null))?.get(String(id))
      return settings === undefined ? null : numberOf(settings, METADATA_SETTING)
    }),
  )
  const known = told.filter((bytes) => bytes !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** Asked before a worker joins: it would work, and none of what it did would be kept. */
export async function throwIfMetadataTooSmall(admin: Admin, client: Client, clock: Clock): Promise<void> {
  // Who may not read the settings finds out by the first commit that is refused.
  const bytes = await metadataBytesMaxOf(admin, client, clock).catch(() => null)
  if (bytes === null || bytes >= METADATA_BYTES_MAX) return
  throw new EngineError('ERR_STORAGE_FAILED', `${metadataTooSmall(bytes)}. ${METADATA_ADVICE}`)
}

/** A commit that was refused for what it says, with what to do about it; any other error as a Millrace error. */
export function explainCommit(client: Client, error: unknown): MillraceError {
  if (!isKafkaError(client, error, 'OFFSET_METADATA_TOO_LARGE')) return toEngineError(error)
  const text = `the broker refuses commits because they say more than it allows. ${METADATA_ADVICE}`
  return new EngineError('ERR_STORAGE_FAILED', text, { cause: error })
}
