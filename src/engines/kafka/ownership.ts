import type { Clock } from '../../time/clock.ts'
import { Commits } from './commits.ts'
import { within } from './deadline.ts'
import type { Admin, Client } from './driver.ts'
import { holdOf } from './hold.ts'
import { type Epoch, Holding, nameOf, type PartitionName } from './holding.ts'
import { deletedRecords, fullOfRetries, recreatedTopic, shorterLog } from './log-errors.ts'
import { Member } from './member.ts'
import { offsetsOf } from './offsets.ts'
import type { KafkaOptions } from './options.ts'
import { Reader } from './reader.ts'
import { firstPointOf, type StartingPoint, startingPointsOf } from './starting-points.ts'

export interface OwnershipParts {
  readonly client: Client
  readonly admin: Admin
  readonly options: KafkaOptions
  readonly clock: Clock
  readonly topics: readonly string[]
  existing(onError: (error: unknown) => void): Promise<readonly string[]>
  /** Something may be claimable that was not. */
  onReady(): void
  onLost(holding: Holding): void
  onError(error: unknown): void
}

const RELOAD_MS = 200
/** How long a claim that may not wait still looks at the log. Ample: a broker answers within milliseconds. */
const LOOK_MS = 5_000
const STEP_MS = 5

/** The partitions that are ours: from joining the group over reading and committing to giving them away. */
export class Ownership {
  readonly commits: Commits
  readonly #parts: OwnershipParts
  readonly #member: Member
  readonly #reader: Reader
  readonly #holdings = new Map<string, Holding>()
  readonly #drained = new Set<() => void>()
  #loading = 0
  #isClosed = false

  constructor(parts: OwnershipParts) {
    this.#parts = parts
    const { client, options, clock } = parts
    const onError = (error: unknown): void => {
      if (!this.#isClosed) parts.onError(error)
    }
    this.#member = new Member({
      ...{ client, options, clock, topics: parts.topics, onError },
      existing: () => parts.existing(onError),
      onAssigned: (fresh, epoch) => this.#assigned(fresh, epoch),
      onRevoking: (partitions, epoch) => {
        this.#continueIn(epoch)
        return this.#drain(partitions)
      },
      onLost: (partitions) => this.#lose(partitions),
      onSure: () => parts.onReady(),
      onTopics: (ids) => {
        // What is read finds out by itself; the others would hold records of the deleted topic until they need more.
        const sated = [...this.#holdings.values()].filter(({ isHungry }) => !isHungry)
        for (const holding of sated) if (holding.isOther(ids.get(holding.topic))) this.#recreated(holding)
      },
    })
    this.#reader = new Reader({
      ...{ client, options, clock },
      onError: (error) => {
        onError(error)
        this.#member.look()
      },
      holdings: () => this.#holdings.values(),
      onRecords: () => parts.onReady(),
      onPassed: (holding) => this.commits.mark(holding),
      onRecreated: (holding) => this.#recreated(holding),
      onOutOfRange: (holding) => void this.#reload(holding).catch(onError),
    })
    this.commits = new Commits({
      ...{ client, clock, group: options.group, calls: this.#member.calls, onError },
      onFenced: (epoch) => this.#member.fence(epoch),
      onFreed: () => parts.onReady(),
    })
  }

  /** Resolves when the group has taken us in and what it gave us is being read. */
  async open(): Promise<void> {
    await this.#member.join()
    while (this.#loading > 0 && !this.#isClosed) await this.#parts.clock.sleep(STEP_MS)
  }

  get holdings(): Iterable<Holding> {
    return this.#holdings.values()
  }

  /** Nothing may be started or settled: others may have our partitions already. */
  get isFenced(): boolean {
    return this.#member.pulse.isFenced
  }

  /** Resolves when it is known again what is ours, or when the broker has not said so for as long as a call may wait. */
  known(): Promise<void> {
    return this.#member.pulse.known(this.#parts.options.answerMs)
  }

  /** What was fetched is no log: it is fetched again, after a moment. */
  broken(holding: Holding, error: unknown): void {
    holding.rewind()
    this.#reader.pause(error)
  }

  /** Somebody has looked for records. That these were handed out is committed soon; what was read leaves room for more. */
  started(holdings: ReadonlySet<Holding>): void {
    for (const holding of holdings) this.commits.mark(holding)
    this.#reader.pump()
  }

  /** A record was settled or parked: committed soon, and what it kept back may be read. */
  settled(holding: Holding): void {
    this.commits.mark(holding)
    this.#reader.pump()
    if (holding.becomesFull()) this.#parts.onError(fullOfRetries(holding))
    if (holding.isDraining) for (const look of this.#drained) look()
  }

  /** Resolves when all that is in the log now has been read, as far as there is room for it, or after five seconds. */
  async caughtUp(): Promise<void> {
    const { clock, admin, options } = this.#parts
    const untilMs = clock.monotonicMs() + LOOK_MS
    const hungry = [...this.#holdings.values()].filter(({ isHungry }) => isHungry)
    if (hungry.length === 0) return
    const ends = await offsetsOf(admin, hungry, -1n, options.isolation)
    this.#reader.pump()
    const isBehind = (holding: Holding): boolean =>
      holding.isHungry && holding.fetchedTo < (ends.get(nameOf(holding)) ?? 0n)
    while (hungry.some(isBehind) && clock.monotonicMs() < untilMs && !this.#isClosed) await clock.sleep(STEP_MS)
  }

  #assigned(fresh: readonly PartitionName[], epoch: Epoch): void {
    this.#continueIn(epoch)
    if (fresh.length > 0) void this.#load(fresh, epoch)
  }

  #continueIn(epoch: Epoch): void {
    for (const holding of this.#holdings.values()) {
      holding.epoch = epoch
      if (holding.isDirty) this.commits.mark(holding)
    }
  }

  /** Tries until it succeeds, or nothing of it is ours any more. */
  async #load(fresh: readonly PartitionName[], epoch: Epoch): Promise<void> {
    const isOurs = (partition: PartitionName): boolean => !this.#isClosed && this.#member.isMine(partition, epoch)
    this.#loading += 1
    try {
      for (let left = fresh; left.length > 0; left = left.filter(isOurs)) {
        try {
          await this.#loadOnce(left, epoch, isOurs)
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
    epoch: Epoch,
    isOurs: (partition: PartitionName) => boolean,
  ): Promise<void> {
    const points = await startingPointsOf(this.#parts.admin, this.#parts.options.group, fresh)
    const loaded = fresh.flatMap((partition) => {
      const point = points.get(nameOf(partition))
      if (point === undefined) return []
      return [{ partition, point, holding: this.#hold(partition, point, this.#member.epoch ?? epoch) }]
    })
    // Before anything of it runs: without a committed place, the next owner would not know that we had begun.
    const unknown = loaded.filter(({ partition, point }) => point.isFirst && isOurs(partition))
    if (unknown.length > 0) await this.commits.commit(unknown.map(({ holding }) => holding))
    for (const { partition, point, holding } of loaded) {
      if (!isOurs(partition)) continue
      holding.epoch = this.#member.epoch ?? epoch
      this.#holdings.set(nameOf(holding), holding)
      if (point.isRecreated) this.#parts.onError(recreatedTopic(holding))
      if (point.offset < point.start) this.#skip(holding, point.start)
    }
    this.#reader.pump()
    this.#parts.onReady()
  }

  #hold(partition: PartitionName, point: StartingPoint, epoch: Epoch): Holding {
    const { options } = this.#parts
    const hold = holdOf(options, partition.topic)
    return new Holding(partition, point, { epoch, hold, group: options.group })
  }

  /** Retention has removed what was to be read next: goes on with what is left. */
  #skip(holding: Holding, start: bigint): void {
    this.#parts.onError(deletedRecords(holding, start))
    holding.skipTo(Number(start))
    this.settled(holding)
  }

  /** What was to be read next is not in the log. */
  async #reload(holding: Holding): Promise<void> {
    const [starts, ends] = await Promise.all([-2n, -1n].map((at) => offsetsOf(this.#parts.admin, [holding], at)))
    const name = nameOf(holding)
    const [start = 0n, end = 0n] = [starts?.get(name), ends?.get(name)]
    const { fetchedTo } = holding
    if (holding.isLost) return
    if (fetchedTo < start) this.#skip(holding, start)
    else if (fetchedTo > end) this.#restart(holding, { start, end })
  }

  /** Other records have the offsets: nothing that is held of it counts any more, and it is loaded as if just assigned. */
  #recreated(holding: Holding): void {
    if (holding.isLost || this.#isClosed) return
    this.#parts.onError(recreatedTopic(holding))
    this.#lose([holding])
    void this.#load([holding.assigned], this.#member.epoch ?? holding.epoch)
  }

  /** The log is shorter than what was read of it: it was cut. */
  #restart(holding: Holding, { start, end }: { readonly start: bigint; readonly end: bigint }): void {
    const { epoch, assigned, topicId } = holding
    this.#parts.onError(shorterLog(holding, { start, end }))
    this.#lose([holding])
    const anew = this.#hold(assigned, firstPointOf(topicId, start), epoch)
    this.#holdings.set(nameOf(holding), anew)
    this.settled(anew)
  }

  /** What runs may finish; then what is done is committed, still under the old membership. */
  async #drain(partitions: readonly PartitionName[]): Promise<void> {
    const holdings = this.#of(partitions)
    for (const holding of holdings) holding.isDraining = true
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = (): void => {
      if (holdings.every(({ lanes, isLost }) => isLost || lanes.out === 0)) resolve()
    }
    const cancel = this.#parts.clock.after(this.#parts.options.drainMs, resolve)
    this.#drained.add(look)
    look()
    await promise
    cancel()
    this.#drained.delete(look)
    await this.commits.commit(holdings)
  }

  #lose(partitions: readonly PartitionName[]): void {
    for (const holding of this.#of(partitions)) {
      holding.isLost = true
      this.#holdings.delete(nameOf(holding))
      this.#parts.onLost(holding)
    }
    for (const look of this.#drained) look()
  }

  #of(partitions: readonly PartitionName[]): readonly Holding[] {
    return partitions.flatMap((partition) => this.#holdings.get(nameOf(partition)) ?? [])
  }

  /** Stops reading; what is held may still be settled. */
  async stop(): Promise<void> {
    await this.#reader.close()
  }

  /**
   * In the middle of a rebalance the broker refuses commits for a moment, or we do not know our generation yet. What
   * would stay uncommitted now nobody commits later.
   */
  async #commitLast(): Promise<void> {
    const { clock, options } = this.#parts
    const untilMs = clock.monotonicMs() + options.answerMs
    while (!this.isFenced && this.#holdings.size > 0 && clock.monotonicMs() < untilMs) {
      const { epoch } = this.#member
      if (epoch !== null) this.#continueIn(epoch)
      try {
        return await this.commits.commit([...this.#holdings.values()])
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
