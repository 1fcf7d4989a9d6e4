import type { Clock } from '../../time/clock.ts'
import { within } from './deadline.ts'
import { type Client, clientOptions, groupCall, isKafkaError, type RawConsumer } from './driver.ts'
import { type Epoch, nameOf, type PartitionName } from './holding.ts'
import type { KafkaOptions } from './options.ts'

export interface MemberParts {
  readonly client: Client
  readonly options: KafkaOptions
  readonly clock: Clock
  readonly topics: readonly string[]
  /** These are ours now, and those that we had go on under the new membership. */
  onAssigned(partitions: readonly PartitionName[], epoch: Epoch): void
  /** These are about to move: what it resolves after is still done under this membership, as is all that we keep. */
  onRevoking(partitions: readonly PartitionName[], epoch: Epoch): Promise<void>
  /** These are somebody else's already. */
  onLost(partitions: readonly PartitionName[]): void
  onError(error: unknown): void
}

/** How often new partitions of the topics are looked for: the client does not notice them by itself. */
const TOPOLOGY_MS = 30_000

/** A place in the consumer group: it joins, beats and leaves, and knows which partitions are ours. It reads nothing. */
export class Member {
  readonly raw: RawConsumer
  readonly #parts: MemberParts
  readonly #owned = new Map<string, PartitionName>()
  #memberId: string | null = null
  /** When the broker was last sure to have heard of us: the time at which a beat that it answered was sent. */
  #heardMs = Number.NEGATIVE_INFINITY
  #beatSentMs = Number.NEGATIVE_INFINITY
  #cancelLook: () => void = () => {}
  #topology = ''
  #isClosed = false

  constructor(parts: MemberParts) {
    this.#parts = parts
    const { client, options } = parts
    this.raw = new client.Consumer<Buffer, Buffer, Buffer, Buffer>({
      ...clientOptions(options),
      groupId: options.group,
      protocols: [{ name: 'cooperative-sticky', version: 3 }],
      sessionTimeout: options.sessionMs,
      heartbeatInterval: options.heartbeatMs,
      heartbeatStallTimeout: options.sessionMs,
      rebalanceTimeout: Math.max(options.sessionMs, options.drainMs * 2),
      // A join waits for the others; and a member that gives up would keep its partitions and never come back.
      requestTimeout: Math.max(options.answerMs, options.drainMs * 2 + options.sessionMs),
      retries: true,
      protocolsMetadata: () => this.#beforeJoin(),
    })
    this.raw.on('error', (error: Error) => parts.onError(error))
    this.raw.on('consumer:heartbeat:start', () => {
      this.#beatSentMs = parts.clock.monotonicMs()
    })
    this.raw.on('consumer:heartbeat:end', () => {
      this.#heardMs = Math.max(this.#heardMs, this.#beatSentMs)
    })
    this.raw.on('consumer:group:join', () => this.#joined())
  }

  /** Resolves when the group has taken us in, with or without partitions. */
  async join(): Promise<void> {
    this.raw.topics.trackAll(...this.#parts.topics)
    this.#topology = await this.#lookAtTopology()
    await this.raw.joinGroup({})
    this.#lookAgain()
  }

  /**
   * The broker may have given our partitions away: it has not heard of us for the length of a session. Whoever wakes up
   * from a pause finds out here, before the network could tell.
   */
  get isFenced(): boolean {
    return this.#parts.clock.monotonicMs() - this.#heardMs >= this.#parts.options.sessionMs
  }

  /** Under which membership we are in the group now; null before the first and after the last. */
  get epoch(): Epoch | null {
    const { memberId, generationId } = this.raw
    return memberId === null || memberId !== this.#memberId ? null : { memberId, generationId }
  }

  /** Whether all of these have been ours since that membership. */
  isMine(partitions: readonly PartitionName[], epoch: Epoch): boolean {
    return epoch.memberId === this.#memberId && partitions.every((partition) => this.#owned.has(nameOf(partition)))
  }

  /** The broker has said that this membership is over. */
  fence(epoch: Epoch): void {
    if (epoch.memberId !== this.#memberId) return
    this.#loseAll()
  }

  /** Leaves the group, or is given up when the broker does not answer: then it is missed after a session. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelLook()
    const { clock, options, client } = this.#parts
    try {
      await within(clock, options.answerMs, this.raw.close(true))
    } catch {
      // It would go on to try, and keep the process alive, for ever.
      this.raw[client.kOptions].retries = 0
      this.raw.emit('client:close')
      await within(clock, options.answerMs, this.raw.connections.close()).catch(() => {})
    }
  }

  #joined(): void {
    const { memberId, generationId } = this.raw
    if (memberId === null || this.#isClosed) return
    if (this.#memberId !== null && this.#memberId !== memberId) this.#loseAll()
    this.#memberId = memberId
    this.#heardMs = this.#parts.clock.monotonicMs()
    const now = this.#assigned()
    const gone = [...this.#owned.values()].filter((partition) => !now.has(nameOf(partition)))
    if (gone.length > 0) this.#lose(gone)
    const fresh = [...now.values()].filter((partition) => !this.#owned.has(nameOf(partition)))
    for (const partition of fresh) this.#owned.set(nameOf(partition), partition)
    this.#parts.onAssigned(fresh, { generationId, memberId })
  }

  /**
   * The client awaits this before every JoinGroup, and the old membership still commits meanwhile. It does not beat
   * while it waits, so we do.
   */
  async #beforeJoin(): Promise<Buffer> {
    const now = this.#assigned()
    const moving = [...this.#owned.values()].filter((partition) => !now.has(nameOf(partition)))
    if (moving.length === 0) return Buffer.alloc(0)
    // The group is a generation further than when we were last told: no event says so.
    const { epoch } = this
    if (epoch === null) {
      this.#loseAll()
      return Buffer.alloc(0)
    }
    const stop = this.#beat()
    try {
      await this.#parts.onRevoking(moving, epoch)
    } catch (error) {
      this.#parts.onError(error)
    } finally {
      stop()
    }
    this.#lose(moving)
    return Buffer.alloc(0)
  }

  /** Beats until it is stopped. A rebalance that goes on is no reason to end; a membership that is over is. */
  #beat(): () => void {
    const { client, options, clock } = this.#parts
    const { memberId, generationId } = this.raw
    let cancel = (): void => {}
    const send = async (): Promise<void> => {
      const sentMs = clock.monotonicMs()
      try {
        await groupCall(client, this.raw, 'Heartbeat', options.group, generationId, memberId, null)
      } catch (error) {
        if (isKafkaError(client, error, 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID')) return this.#loseAll()
        if (!isKafkaError(client, error, 'REBALANCE_IN_PROGRESS')) return
      }
      this.#heardMs = Math.max(this.#heardMs, sentMs)
    }
    const arm = (): void => {
      cancel = clock.after(options.heartbeatMs, () => {
        void send()
        arm()
      })
    }
    void send()
    arm()
    return () => cancel()
  }

  #assigned(): ReadonlyMap<string, PartitionName> {
    const partitions = (this.raw.assignments ?? []).flatMap((assigned) =>
      assigned.partitions.map((partition) => ({ topic: assigned.topic, partition })),
    )
    return new Map(partitions.map((partition) => [nameOf(partition), partition]))
  }

  #loseAll(): void {
    this.#lose([...this.#owned.values()])
  }

  #lose(partitions: readonly PartitionName[]): void {
    const lost = partitions.filter((partition) => this.#owned.delete(nameOf(partition)))
    if (lost.length > 0) this.#parts.onLost(lost)
  }

  #lookAgain(): void {
    if (this.#isClosed) return
    this.#cancelLook = this.#parts.clock.after(TOPOLOGY_MS, () => {
      this.checkTopology()
        .catch((error: unknown) => this.#parts.onError(error))
        .finally(() => this.#lookAgain())
    })
  }

  /** Joins again if the topics have other partitions than when we last looked. */
  async checkTopology(): Promise<void> {
    const topology = await this.#lookAtTopology()
    const isNew = this.#topology !== topology
    this.#topology = topology
    if (isNew && !this.#isClosed) await this.raw.joinGroup({})
  }

  async #lookAtTopology(): Promise<string> {
    const { topics } = await this.raw.metadata({ topics: [...this.#parts.topics], forceUpdate: true })
    return [...topics]
      .map(([name, { partitionsCount }]) => `${name}=${partitionsCount}`)
      .sort()
      .join()
  }
}
