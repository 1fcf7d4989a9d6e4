import { EngineError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { explained } from './client-faults.ts'
import { type Client, clientOptions, GroupCalls, guardMember, isKafkaError, type RawConsumer } from './driver.ts'
import { within } from './faults.ts'
import { Heartbeat } from './heartbeat.ts'
import { clientIdOf } from './members.ts'
import type { KafkaOptions } from './options.ts'
import type { Membership } from './owned-partition.ts'
import { nameOf, type PartitionName } from './record.ts'

export interface GroupMemberParts {
  readonly client: Client
  readonly options: KafkaOptions
  readonly clock: Clock
  readonly topics: readonly string[]
  /** The id of the worker that it is the member of. */
  readonly worker: string
  /** All topics that there are. */
  existing(): Promise<readonly string[]>
  /** These are ours now, and those that we had go on under the new membership. */
  onAssigned(partitions: readonly PartitionName[], membership: Membership): void
  /** These are about to move: what it resolves after is still done under this membership, as is all that we keep. */
  onRevoking(partitions: readonly PartitionName[], membership: Membership): Promise<void>
  /** Other members own these already. */
  onLost(partitions: readonly PartitionName[]): void
  /** The ids of those that are there, by name, as seen now. */
  onTopics(ids: ReadonlyMap<string, string>): void
  /** Commits what we have. Rejects when the group does not take it. */
  commit(): Promise<void>
  /** It is sure again that what we have is ours. */
  onSure(): void
  onError(error: unknown): void
}

/** How often new partitions of the topics are looked for: the client does not notice them by itself. */
const LOOK_MS = 30_000
/** The same while something is wrong with them. */
const LOOK_SOON_MS = 1_000
const LOOK_RETRIES = 3
const STEP_MS = 10

/** A member of the consumer group: joins, sends heartbeats, leaves, and knows its partitions. It reads nothing. */
export class GroupMember {
  readonly raw: RawConsumer
  readonly calls: GroupCalls
  readonly heartbeat: Heartbeat
  readonly #parts: GroupMemberParts
  readonly #owned = new Map<string, PartitionName>()
  #memberId: string | null = null
  #cancelLook: () => void = () => {}
  #isLookingSoon = false
  #topology = ''
  /** The client has failed to join again, and does not try any more. */
  #isStranded = false
  #isClosed = false
  #isJoining = false
  #checking: Promise<void> = Promise.resolve()
  /** Resolved with the end: what the client was asked for may never be answered then. */
  readonly #over = Promise.withResolvers<void>()

  constructor(parts: GroupMemberParts) {
    this.#parts = parts
    const { client, options } = parts
    const rebalanceMs = Math.max(options.sessionMs, options.drainMs * 2)
    this.raw = new client.Consumer<Buffer, Buffer, Buffer, Buffer>({
      ...clientOptions(options, clientIdOf(parts.worker)),
      groupId: options.group,
      protocols: [{ name: 'cooperative-sticky', version: 3 }],
      sessionTimeout: options.sessionMs,
      heartbeatInterval: options.heartbeatMs,
      heartbeatStallTimeout: options.sessionMs,
      rebalanceTimeout: rebalanceMs,
      // A join waits for the others; and a member that gives up would keep its partitions and never come back.
      requestTimeout: Math.max(options.answerMs, options.drainMs * 2 + options.sessionMs),
      retries: true,
      protocolsMetadata: () => this.#beforeJoin(),
    })
    guardMember(client, this.raw)
    this.raw.on('error', (error: Error) => {
      parts.onError(error)
      this.#isStranded = true
      this.look()
    })
    this.raw.on('consumer:group:join', () => this.#joined())
    this.calls = new GroupCalls(client, this.raw, options)
    const { sessionMs, heartbeatMs } = options
    this.heartbeat = new Heartbeat({
      ...{ clock: parts.clock, sessionMs, heartbeatMs, rebalanceMs, beat: () => this.#beat() },
      isProven: () =>
        parts.commit().then(
          () => true,
          () => false,
        ),
      onSure: () => parts.onSure(),
    })
  }

  /** Resolves when the group has taken us in, with or without partitions, and has heard of us since. */
  async join(): Promise<void> {
    this.#topology = await this.#lookAtTopology()
    if (this.#isClosed) return
    this.#isJoining = true
    await Promise.race([explained(this.raw.joinGroup({})), this.#over.promise]).finally(() => {
      this.#isJoining = false
    })
    if (this.#isClosed) return
    // A topic that was just created may not be listed yet: then the next look comes soon, and must not be put off.
    if (!this.#isLookingSoon) this.#lookIn(LOOK_MS)
    await this.heartbeat.known(this.#parts.options.answerMs)
  }

  /** Under which membership we are in the group now; null before the first and after the last. */
  get membership(): Membership | null {
    const { memberId, generationId } = this.raw
    return memberId === null || memberId !== this.#memberId ? null : { memberId, generationId }
  }

  /** Whether it has been ours ever since it was assigned in that membership. */
  isMine(assigned: PartitionName, membership: Membership): boolean {
    // The very object: a partition that was lost and came back may have been another member's meanwhile.
    return membership.memberId === this.#memberId && this.#owned.get(nameOf(assigned)) === assigned
  }

  /** The broker has said that this membership is over. */
  fence(membership: Membership): void {
    if (membership.memberId !== this.#memberId) return
    this.#loseAll()
  }

  /** Leaves the group, or is given up when the broker does not answer: then it is missed after a session. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelLook()
    this.heartbeat.stop()
    const { clock, options, client } = this.#parts
    if (this.#isJoining) await within(clock, options.answerMs, this.#leaveWhileJoining()).catch(() => {})
    await within(clock, options.answerMs, this.calls.close()).catch(() => {})
    try {
      await within(clock, options.answerMs, this.raw.close(true))
    } catch {
      this.raw[client.kOptions].retries = 0
      this.raw.emit('client:close')
      await within(clock, options.answerMs, this.raw.connections.close()).catch(() => {})
    } finally {
      // A join or a call that was under way would be tried, and keep the process alive, for ever: none is tried again, and
      // none begins.
      this.raw[client.kOptions].retries = 0
      this.raw[client.kPerformDeduplicated] = () => undefined
      this.#over.resolve()
    }
  }

  /**
   * The broker reads nothing more from the member's own connection until everybody else has joined too, so this goes by
   * another connection. The group would wait a session for a member that does not leave.
   */
  async #leaveWhileJoining(): Promise<void> {
    const { clock, options, client } = this.#parts
    // It must not join once more when it hears that it has left.
    this.raw[client.kPerformDeduplicated] = () => undefined
    // The broker gives a member its id at once.
    while (this.#isJoining && this.raw.memberId === null) await clock.sleep(STEP_MS)
    const { memberId } = this.raw
    if (memberId !== null) await this.calls.call('LeaveGroup', options.group, [{ memberId }])
  }

  #joined(): void {
    const { memberId, generationId } = this.raw
    if (memberId === null || this.#isClosed) return
    if (this.#memberId !== null && this.#memberId !== memberId) this.#loseAll()
    this.#memberId = memberId
    this.heartbeat.start()
    const now = this.#assigned()
    const gone = [...this.#owned.values()].filter((partition) => !now.has(nameOf(partition)))
    if (gone.length > 0) this.#lose(gone)
    const fresh = [...now.values()].filter((partition) => !this.#owned.has(nameOf(partition)))
    for (const partition of fresh) this.#owned.set(nameOf(partition), partition)
    this.#parts.onAssigned(fresh, { generationId, memberId })
  }

  /** The client awaits this before every JoinGroup, and the old membership still beats and commits meanwhile. */
  async #beforeJoin(): Promise<Buffer> {
    const now = this.#assigned()
    const moving = [...this.#owned.values()].filter((partition) => !now.has(nameOf(partition)))
    if (moving.length > 0) await this.#revoke(moving)
    this.heartbeat.joining()
    return Buffer.alloc(0)
  }

  async #revoke(moving: readonly PartitionName[]): Promise<void> {
    // The group is a generation further than when we were last told: no event says so.
    const { membership } = this
    if (membership === null) return this.#loseAll()
    try {
      await this.#parts.onRevoking(moving, membership)
    } catch (error) {
      this.#parts.onError(error)
    }
    this.#lose(moving)
  }

  /** A rebalance that goes on is no reason to worry; a membership that is over is. */
  async #beat(): Promise<'member' | 'rebalancing' | 'gone' | 'unknown'> {
    const { client, options } = this.#parts
    const { membership } = this
    if (membership === null) return 'unknown'
    let answer: 'member' | 'rebalancing' = 'member'
    try {
      await this.calls.call('Heartbeat', options.group, membership.generationId, membership.memberId, null)
    } catch (error) {
      if (isKafkaError(client, error, 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID')) {
        this.fence(membership)
        return 'gone'
      }
      if (!isKafkaError(client, error, 'REBALANCE_IN_PROGRESS')) return 'unknown'
      answer = 'rebalancing'
    }
    return membership.memberId === this.#memberId ? answer : 'unknown'
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

  /** Something may be wrong with the topics: looks soon. */
  look(): void {
    if (this.#isLookingSoon || this.#isClosed) return
    this.#isLookingSoon = true
    this.#lookIn(LOOK_SOON_MS)
  }

  #lookIn(ms: number): void {
    this.#cancelLook()
    if (this.#isClosed) return
    this.#cancelLook = this.#parts.clock.after(ms, () => {
      this.#isLookingSoon = false
      this.checkTopology()
        .catch((error: unknown) => {
          this.#parts.onError(error)
          this.look()
        })
        .finally(() => this.#isLookingSoon || this.#lookIn(LOOK_MS))
    })
  }

  /** Joins again if the topics are others, or have other partitions, than when we last joined. One look at a time. */
  checkTopology(): Promise<void> {
    const checking = this.#checking.then(() => this.#checkTopologyNow())
    this.#checking = checking.catch(() => {})
    return checking
  }

  async #checkTopologyNow(): Promise<void> {
    // The member's calls are repeated for ever; a topic that was deleted since it was listed would then be the last look.
    const topology = await this.#lookAtTopology({ retries: LOOK_RETRIES })
    if ((topology === this.#topology && !this.#isStranded) || this.#isClosed) return
    this.#isStranded = false
    await explained(this.raw.joinGroup({}))
    this.#topology = topology
  }

  /** One topic that is gone would make the client fail for all, so it is told of those that are there. */
  async #lookAtTopology(calls: { readonly retries?: number } = {}): Promise<string> {
    const existing = new Set(await this.#parts.existing())
    const there = this.#parts.topics.filter((topic) => existing.has(topic))
    const missing = this.#parts.topics.filter((topic) => !existing.has(topic))
    this.raw.topics.untrackAll(...missing)
    for (const topic of there) if (!this.raw.topics.current.includes(topic)) this.raw.topics.track(topic)
    if (missing.length > 0) {
      this.look()
      this.#parts.onError(new EngineError('ERR_SCHEMA_MISSING', `${missing.join()} was deleted; create it again`))
    }
    const { topics } = await explained(this.raw.metadata({ topics: there, forceUpdate: true, ...calls }))
    this.#parts.onTopics(new Map([...topics].map(([name, { id }]) => [name, id])))
    return [...topics]
      .map(([name, { partitionsCount }]) => `${name}=${partitionsCount}`)
      .sort()
      .join()
  }
}
