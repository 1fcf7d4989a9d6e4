import type { Clock } from '../../time/clock.ts'
import type { Client } from './driver.ts'
import { FetchClient, type Fetched, type Wanted } from './fetch-client.ts'
import type { KafkaOptions } from './options.ts'
import type { OwnedPartition } from './owned-partition.ts'
import { RecordCursor } from './record-cursor.ts'

export interface FetchLoopParts {
  readonly client: Client
  readonly options: KafkaOptions
  readonly clock: Clock
  /** All partitions that are ours. Those that are not hungry are left out of the fetch. */
  ownedPartitions(): Iterable<OwnedPartition>
  isPaused(topic: string): boolean
  /** Records were added to partitions. */
  onRecords(): void
  /** It has come further without a record: aborted ones, or the marks of transactions. */
  onPassed(owned: OwnedPartition): void
  /** Under its name there is another topic now. */
  onRecreated(owned: OwnedPartition): void
  /** What it had read to is not in the log any more, or not yet. */
  onOutOfRange(owned: OwnedPartition): void
  onError(error: unknown): void
}

/** How long the broker may keep a fetch open. */
const WAIT_MS = 500
/** The same while others have enough in hand: they cannot be asked for before the answer, and may soon be hungry. */
const WAIT_MS_BUSY = 25
const FETCH_BYTES_MAX = 16 * 1_024 * 1_024
const PARTITION_BYTES_MAX = 1_024 * 1_024
const ERROR_MS = 200
const OFFSET_OUT_OF_RANGE = 1

interface Target extends Wanted {
  readonly owned: OwnedPartition
}

/** FetchClient what is hungry, from each broker with one request at a time. It never joins a group and commits nothing. */
export class FetchLoop {
  readonly #parts: FetchLoopParts
  readonly #calls: FetchClient
  readonly #busy = new Set<number>()
  readonly #fetches = new Set<Promise<void>>()
  #isStale = false
  #isLooking = false
  #isWanted = false
  #isClosed = false
  #cancelPause: (() => void) | null = null

  constructor(parts: FetchLoopParts) {
    this.#parts = parts
    this.#calls = new FetchClient(parts.client, parts.options, WAIT_MS, parts.options.isolation)
  }

  /** Starts to fetch from every broker that nothing is asked of yet. Cheap: call it whenever something may be hungry. */
  pump(): void {
    if (this.#isClosed || this.#cancelPause !== null) return
    // Called at every settlement: one look at a time is enough, and one more after it.
    if (this.#isLooking) {
      this.#isWanted = true
      return
    }
    const ownedPartitions = [...this.#parts.ownedPartitions()].filter(({ topic }) => !this.#parts.isPaused(topic))
    const hungry = ownedPartitions.filter(({ wantsMore }) => wantsMore)
    if (hungry.length === 0) return
    this.#isLooking = true
    const waitMs = hungry.length === ownedPartitions.length ? WAIT_MS : WAIT_MS_BUSY
    const fetching = this.#look(hungry, waitMs).catch((error: unknown) => this.pause(error))
    this.#fetches.add(fetching)
    void fetching.finally(() => {
      this.#fetches.delete(fetching)
      this.#isLooking = false
      if (!this.#isWanted) return
      this.#isWanted = false
      this.pump()
    })
  }

  async #look(hungry: readonly OwnedPartition[], waitMs: number): Promise<void> {
    this.#isWanted = false
    const topics = [...new Set(hungry.map(({ topic }) => topic))]
    const wasStale = this.#isStale
    // Before the call: a fetch that fails meanwhile makes what it answers stale again.
    this.#isStale = false
    const metadata = await this.#calls.metadata(topics, wasStale).catch((error: unknown) => {
      this.#isStale = true
      throw error
    })
    const byNode = new Map<number, Target[]>()
    for (const owned of hungry) {
      const { topic, topicId, partition, fetchedTo: from } = owned
      // What was known before may be older than the holding. A leader that does not know its topic any more refuses.
      if (wasStale && owned.isOtherTopic(metadata.topics.get(topic)?.id)) {
        this.#parts.onRecreated(owned)
        continue
      }
      const leader = metadata.topics.get(topic)?.partitions[partition]?.leader
      if (leader === undefined || this.#busy.has(leader)) continue
      const target = { topic, topicId, partition, from, owned, bytesMax: PARTITION_BYTES_MAX }
      byNode.set(leader, [...(byNode.get(leader) ?? []), target])
    }
    for (const [node, targets] of byNode) void this.#fetch(metadata, node, targets, waitMs)
  }

  async #fetch(
    metadata: Parameters<FetchClient['fetch']>[0],
    node: number,
    targets: readonly Target[],
    waitMs: number,
  ): Promise<void> {
    this.#busy.add(node)
    try {
      this.#receive(await this.#calls.fetch(metadata, node, targets, { waitMs, bytesMax: FETCH_BYTES_MAX }))
    } catch (error) {
      this.#isStale = true
      this.pause(error)
    } finally {
      this.#busy.delete(node)
      this.pump()
    }
  }

  #receive(answer: readonly Fetched<Target>[]): void {
    let isAny = false
    for (const { wanted, errorCode, batches, aborted } of answer) {
      const { owned, from } = wanted
      if (owned.isLost) continue
      if (errorCode === OFFSET_OUT_OF_RANGE) this.#parts.onOutOfRange(owned)
      // It was skipped or begun anew meanwhile.
      if (errorCode !== 0 || batches === null || from !== owned.fetchedTo) continue
      const { position } = owned.watermark
      isAny = owned.feed(new RecordCursor(this.#parts.client, owned, batches, from, aborted)) || isAny
      if (owned.watermark.position !== position) this.#parts.onPassed(owned)
    }
    if (isAny) this.#parts.onRecords()
    // One bad partition keeps back nothing that the others brought.
    const bad = answer.find(({ errorCode }) => errorCode !== 0)
    if (bad !== undefined) throw new this.#parts.client.ProtocolError(bad.errorCode)
  }

  /** Tells of an error, and asks for nothing for a moment. */
  pause(error: unknown): void {
    if (this.#isClosed) return
    this.#parts.onError(error)
    this.#cancelPause ??= this.#parts.clock.after(ERROR_MS, () => {
      this.#cancelPause = null
      this.pump()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelPause?.()
    await Promise.allSettled([this.#calls.close(), ...this.#fetches])
  }
}
