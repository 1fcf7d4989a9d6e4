import type { Clock } from '../../time/clock.ts'
import { Commits } from './commits.ts'
import type { Admin, Client } from './driver.ts'
import { deletedRecords, fullOfRetries, recreatedTopic, shorterLog, within } from './faults.ts'
import { FetchLoop } from './fetch-loop.ts'
import { GroupMember } from './member.ts'
import { firstPointOf, offsetsOf, type StartingPoint, startingPointsOf } from './offsets.ts'
import { holdOf, type KafkaOptions } from './options.ts'
import { type Membership, OwnedPartition } from './owned-partition.ts'
import { nameOf, type PartitionName } from './record.ts'

export interface AssignmentParts {
  readonly client: Client
  readonly admin: Admin
  readonly options: KafkaOptions
  readonly clock: Clock
  readonly topics: readonly string[]
  readonly worker: string
  /** Nothing of a paused topic is fetched. */
  isPaused(topic: string): boolean
  existing(onError: (error: unknown) => void): Promise<readonly string[]>
  /** Something may be claimable that was not. */
  onReady(): void
  onLost(owned: OwnedPartition): void
  onError(error: unknown): void
}

const RELOAD_MS = 200
/** How long a claim that may not wait still looks at the log. Ample: a broker answers within milliseconds. */
const LOOK_MS = 5_000
const STEP_MS = 5

/** The partitions assigned to this member: it joins the group, reads and commits them, and gives them up. */
export class Assignment {
  readonly commits: Commits
  readonly #parts: AssignmentParts
  readonly #member: GroupMember
  readonly #reader: FetchLoop
  readonly #ownedPartitions = new Map<string, OwnedPartition>()
  readonly #drainChecks = new Set<() => void>()
  #loading = 0
  #isClosed = false

  constructor(parts: AssignmentParts) {
    this.#parts = parts
    const { client, options, clock } = parts
    const onError = (error: unknown): void => {
      if (!this.#isClosed) parts.onError(error)
    }
    this.#member = new GroupMember({
      ...{ client, options, clock, topics: parts.topics, worker: parts.worker, onError },
      existing: () => parts.existing(onError),
      onAssigned: (fresh, membership) => this.#assigned(fresh, membership),
      onRevoking: (partitions, membership) => {
        this.#continueIn(membership)
        return this.#drain(partitions)
      },
      onLost: (partitions) => this.#lose(partitions),
      commit: () => this.commits.commit([...this.#ownedPartitions.values()]),
      onSure: () => parts.onReady(),
      onTopics: (ids) => {
        // What is read finds out by itself; the others would hold records of the deleted topic until they need more.
        const sated = [...this.#ownedPartitions.values()].filter(({ wantsMore }) => !wantsMore)
        for (const owned of sated) if (owned.isOtherTopic(ids.get(owned.topic))) this.#recreated(owned)
      },
    })
    this.#reader = new FetchLoop({
      ...{ client, options, clock },
      onError: (error) => {
        onError(error)
        this.#member.look()
      },
      ownedPartitions: () => this.#ownedPartitions.values(),
      isPaused: parts.isPaused,
      onRecords: () => parts.onReady(),
      onPassed: (owned) => this.commits.mark(owned),
      onRecreated: (owned) => this.#recreated(owned),
      onOutOfRange: (owned) => void this.#reload(owned).catch(onError),
    })
    this.commits = new Commits({
      ...{ client, clock, group: options.group, calls: this.#member.calls, onError },
      onFenced: (membership) => this.#member.fence(membership),
      onFreed: () => parts.onReady(),
    })
  }

  /** Resolves when the group has taken us in and what it gave us is being read. */
  async open(): Promise<void> {
    await this.#member.join()
    while (this.#loading > 0 && !this.#isClosed) await this.#parts.clock.sleep(STEP_MS)
  }

  get ownedPartitions(): Iterable<OwnedPartition> {
    return this.#ownedPartitions.values()
  }

  /** Other members may own the partitions already, so nothing may be started or settled. */
  get isFenced(): boolean {
    return this.#member.heartbeat.isFenced
  }

  /** Resolves when it is known again what is ours, or when the broker has not said so for as long as a call may wait. */
  known(): Promise<void> {
    return this.#member.heartbeat.known(this.#parts.options.answerMs)
  }

  /** The fetched bytes are damaged: they are fetched again after a pause. */
  broken(owned: OwnedPartition, error: unknown): void {
    owned.rewind()
    this.#reader.pause(error)
  }

  /** Somebody has looked for records. What was handed out or passed over is committed soon; what was read leaves room. */
  started(ownedPartitions: ReadonlySet<OwnedPartition>): void {
    for (const owned of ownedPartitions) this.commits.mark(owned)
    this.#reader.pump()
  }

  /** A record was settled or parked: committed soon, and what it kept back may be read. */
  settled(owned: OwnedPartition): void {
    this.commits.mark(owned)
    this.#reader.pump()
    if (owned.becomesFull()) this.#parts.onError(fullOfRetries(owned))
    if (owned.isDraining) for (const check of this.#drainChecks) check()
  }

  /** Resolves when all that is in the log now has been read, as far as there is room for it, or after five seconds. */
  async caughtUp(): Promise<void> {
    const { clock, admin, options, isPaused } = this.#parts
    const untilMs = clock.monotonicMs() + LOOK_MS
    const hungry = [...this.#ownedPartitions.values()].filter(({ wantsMore, topic }) => wantsMore && !isPaused(topic))
    if (hungry.length === 0) return
    const ends = await offsetsOf(admin, hungry, -1n, options.isolation)
    this.#reader.pump()
    const isBehind = (owned: OwnedPartition): boolean =>
      owned.wantsMore && owned.fetchedTo < (ends.get(nameOf(owned)) ?? 0n)
    while (hungry.some(isBehind) && clock.monotonicMs() < untilMs && !this.#isClosed) await clock.sleep(STEP_MS)
  }

  #assigned(fresh: readonly PartitionName[], membership: Membership): void {
    this.#continueIn(membership)
    if (fresh.length > 0) void this.#load(fresh, membership)
  }

  #continueIn(membership: Membership): void {
    for (const owned of this.#ownedPartitions.values()) {
      owned.membership = membership
      if (owned.isDirty) this.commits.mark(owned)
    }
  }

  /** Repeats until it succeeds or none of the partitions is ours. */
  async #load(fresh: readonly PartitionName[], membership: Membership): Promise<void> {
    const isOurs = (partition: PartitionName): boolean => !this.#isClosed && this.#member.isMine(partition, membership)
    this.#loading += 1
    try {
      for (let left = fresh; left.length > 0; left = left.filter(isOurs)) {
        try {
          await this.#loadOnce(left, membership, isOurs)
          return
        } catch (error) {
          this.#parts.onError(error)
          await this.#parts.clock.sleep(RELOAD_MS)
        }
      }
    } finally {
      this.#loading -= 1
    }
  }

  async #loadOnce(
    fresh: readonly PartitionName[],
    membership: Membership,
    isOurs: (partition: PartitionName) => boolean,
  ): Promise<void> {
    const points = await startingPointsOf(this.#parts.admin, this.#parts.options, fresh)
    const loaded = fresh.flatMap((partition) => {
      const point = points.get(nameOf(partition))
      if (point === undefined) return []
      return [{ partition, point, owned: this.#hold(partition, point, this.#member.membership ?? membership) }]
    })
    // Before anything of it runs, so that the next owner knows that we had begun.
    const untouched = loaded.filter(({ partition, point }) => point.isUntouched && isOurs(partition))
    if (untouched.length > 0) await this.commits.commit(untouched.map(({ owned }) => owned))
    for (const { partition, point, owned } of loaded) {
      if (!isOurs(partition)) continue
      owned.membership = this.#member.membership ?? membership
      this.#ownedPartitions.set(nameOf(owned), owned)
      if (point.isRecreated) this.#parts.onError(recreatedTopic(owned))
      if (point.offset < point.start) this.#skip(owned, point.start)
    }
    this.#reader.pump()
    this.#parts.onReady()
  }

  #hold(partition: PartitionName, point: StartingPoint, membership: Membership): OwnedPartition {
    const { options } = this.#parts
    const hold = holdOf(options, partition.topic)
    return new OwnedPartition(partition, point, { membership, hold, group: options.group })
  }

  /** Retention has removed what was to be read next: goes on with what is left. */
  #skip(owned: OwnedPartition, start: bigint): void {
    this.#parts.onError(deletedRecords(owned, start))
    owned.skipTo(Number(start))
    this.settled(owned)
  }

  /** What was to be read next is not in the log. */
  async #reload(owned: OwnedPartition): Promise<void> {
    const [starts, ends] = await Promise.all([-2n, -1n].map((at) => offsetsOf(this.#parts.admin, [owned], at)))
    const name = nameOf(owned)
    const [start = 0n, end = 0n] = [starts?.get(name), ends?.get(name)]
    const { fetchedTo } = owned
    if (owned.isLost) return
    if (fetchedTo < start) this.#skip(owned, start)
    else if (fetchedTo > end) this.#restart(owned, { start, end })
  }

  /** Other records have the offsets: nothing that is held of it counts any more, and it is loaded as if just assigned. */
  #recreated(owned: OwnedPartition): void {
    if (owned.isLost || this.#isClosed) return
    this.#parts.onError(recreatedTopic(owned))
    this.#lose([owned])
    void this.#load([owned.assigned], this.#member.membership ?? owned.membership)
  }

  /** The log is shorter than what was read of it: it was cut. */
  #restart(owned: OwnedPartition, { start, end }: { readonly start: bigint; readonly end: bigint }): void {
    const { membership, assigned, topicId } = owned
    this.#parts.onError(shorterLog(owned, { start, end }))
    this.#lose([owned])
    const anew = this.#hold(assigned, firstPointOf(topicId, start), membership)
    this.#ownedPartitions.set(nameOf(owned), anew)
    this.settled(anew)
  }

  /** What runs may finish; then what is done is committed, still under the old membership. */
  async #drain(partitions: readonly PartitionName[]): Promise<void> {
    const ownedPartitions = this.#of(partitions)
    for (const owned of ownedPartitions) owned.isDraining = true
    const { promise, resolve } = Promise.withResolvers<void>()
    const check = (): void => {
      if (ownedPartitions.every(({ queues, isLost }) => isLost || queues.taken === 0)) resolve()
    }
    const cancel = this.#parts.clock.after(this.#parts.options.drainMs, resolve)
    this.#drainChecks.add(check)
    check()
    await promise
    cancel()
    this.#drainChecks.delete(check)
    // What had more time than there was may be settled while the commit is on its way: it was accepted, so it is committed too.
    do await this.commits.commit(ownedPartitions)
    while (ownedPartitions.some(({ isDirty, isLost }) => isDirty && !isLost))
    this.#lose(ownedPartitions)
  }

  #lose(partitions: readonly PartitionName[]): void {
    for (const owned of this.#of(partitions)) {
      owned.isLost = true
      this.#ownedPartitions.delete(nameOf(owned))
      this.#parts.onLost(owned)
    }
    for (const check of this.#drainChecks) check()
  }

  #of(partitions: readonly PartitionName[]): readonly OwnedPartition[] {
    return partitions.flatMap((partition) => this.#ownedPartitions.get(nameOf(partition)) ?? [])
  }

  /**
   * During a rebalance the broker refuses commits for a moment, or the generation is not known yet. This is the last chance
   * to commit, so it is repeated.
   */
  async #commitLast(): Promise<void> {
    const { clock, options } = this.#parts
    const untilMs = clock.monotonicMs() + options.answerMs
    for (const owned of this.#ownedPartitions.values()) owned.isDraining = true
    while (!this.isFenced && this.#ownedPartitions.size > 0 && clock.monotonicMs() < untilMs) {
      const { membership } = this.#member
      if (membership !== null) this.#continueIn(membership)
      try {
        return await this.commits.commit([...this.#ownedPartitions.values()])
      } catch {
        await clock.sleep(STEP_MS * 4)
      }
    }
  }

  /** Commits what is done and leaves the group. Each step has its own end, because a broker may hang. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { clock, options } = this.#parts
    const bounded = (work: Promise<unknown>): Promise<unknown> => within(clock, options.answerMs, work).catch(() => {})
    await bounded(this.#reader.close())
    await bounded(this.#commitLast())
    this.commits.stop()
    await this.#member.close()
  }
}
