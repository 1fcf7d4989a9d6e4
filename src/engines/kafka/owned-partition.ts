import { targetGroupOf } from './job-record.ts'
import { KeyQueues, QueuedRecord } from './key-queues.ts'
import type { LoggedRecord } from './logged-record.ts'
import type { StartingPoint } from './offsets.ts'
import type { Hold } from './options.ts'
import type { PartitionName } from './record.ts'
import type { RecordCursor } from './record-cursor.ts'
import { Watermark } from './watermark.ts'

/** The membership that a partition was assigned in. The broker refuses commits of a membership that is over. */
export interface Membership {
  readonly generationId: number
  readonly memberId: string
}

/** A record in memory. */
export class HeldRecord extends QueuedRecord {
  readonly record: LoggedRecord
  readonly offset: number
  readonly key: string | null
  readonly bytes: number

  constructor(record: LoggedRecord) {
    super()
    this.record = record
    this.offset = record.at
    this.key = record.keyBytes
    this.bytes = record.bytes
  }
}

const COUNT_MAX = 4_096
const BYTES_MAX = 16 * 1_024 * 1_024
/** Below this many unread bytes, more is fetched. */
const HUNGRY_BYTES = 512 * 1_024

/** One partition that this member owns, from its assignment to its loss. */
export class OwnedPartition implements PartitionName {
  /** As the group assigned it. */
  readonly assigned: PartitionName
  readonly topic: string
  readonly partition: number
  /** A topic that is deleted and created again has another one, and other records at the same offsets. */
  readonly topicId: string
  readonly watermark: Watermark
  readonly queues: KeyQueues<HeldRecord>
  #membership: Membership
  #tokenPrefix: string
  /** Whether something is to be committed that is not yet. */
  isDirty = false
  /** The partition is being given up, for good: running jobs may finish, and nothing else starts. */
  isDraining = false
  /** Another member owns the partition: leases on its records are void. */
  isLost = false
  readonly #group: string
  readonly #doubtfulBelow: number
  /** Fetched and not parsed: a record is parsed when a worker can take it. */
  readonly #unread: RecordCursor[] = []
  #fetchedTo: number
  #wasFull = false

  constructor(
    assigned: PartitionName,
    start: Pick<StartingPoint, 'offset' | 'metadata' | 'doubtfulBelow' | 'topicId'>,
    options: { readonly membership: Membership; readonly hold: Hold; readonly group: string },
  ) {
    this.assigned = assigned
    this.topic = assigned.topic
    this.partition = assigned.partition
    this.topicId = start.topicId
    this.#fetchedTo = Number(start.offset)
    this.watermark = new Watermark(this.#fetchedTo, start.metadata)
    this.queues = new KeyQueues({ countMax: COUNT_MAX, bytesMax: BYTES_MAX, hold: options.hold })
    this.#membership = options.membership
    this.#tokenPrefix = this.#describe()
    this.#group = options.group
    this.#doubtfulBelow = Number(start.doubtfulBelow)
  }

  get membership(): Membership {
    return this.#membership
  }

  set membership(membership: Membership) {
    this.#membership = membership
    this.#tokenPrefix = this.#describe()
  }

  /** Where it is held, and under which membership, as one word. */
  get tokenPrefix(): string {
    return this.#tokenPrefix
  }

  #describe(): string {
    const { memberId, generationId } = this.#membership
    return `${memberId}/${generationId}/${this.topic}/${this.partition}`
  }

  /**
   * Whether this start is to be stored before it begins. A first start is told to the broker a moment later, so a
   * crash may forget it; one that may not be the first would then be forgotten again and again.
   */
  needsStoredStart(offset: number, attempt: number): boolean {
    return attempt > 1 || offset < this.#doubtfulBelow
  }

  /** For the metadata of a commit. Once nothing more is started, the next owner need not doubt what was. */
  get progress(): string {
    return this.watermark.encode(this.topicId, this.isDraining ? this.#doubtfulBelow : null)
  }

  /** Whether the topic that has its name now is another one. Undefined where it is not known. */
  isOtherTopic(topicId: string | undefined): boolean {
    return topicId !== undefined && topicId !== this.topicId
  }

  /** True once, when records that wait for a retry begin to block the partition. */
  becomesFull(): boolean {
    const wasFull = this.#wasFull
    this.#wasFull = this.watermark.isFullOfRetries
    return this.#wasFull && !wasFull
  }

  /** Whether more of it should be fetched. */
  get wantsMore(): boolean {
    return this.#unreadBytes < HUNGRY_BYTES && this.#hasRoom && !this.isLost && !this.isDraining
  }

  /** Without what was read of a piece already: asking for more only when all of it is read would leave the worker waiting. */
  get #unreadBytes(): number {
    let bytes = 0
    for (const cursor of this.#unread) bytes += cursor.unreadBytes
    return bytes
  }

  /** Where fetching goes on. */
  get fetchedTo(): number {
    return this.#fetchedTo
  }

  /** Whether there are records that no worker has taken. */
  get isWaiting(): boolean {
    return this.#unread.length > 0 || this.queues.count > this.queues.taken
  }

  /** Adds what was fetched from `fetchedTo` on. False when it has no record. */
  feed(cursor: RecordCursor): boolean {
    const isAny = cursor.count > 0
    this.#fetchedTo = cursor.end
    this.#unread.push(cursor)
    this.#dropRead()
    return isAny
  }

  /** What has not been fetched below this does not exist any more. */
  skipTo(offset: number): void {
    this.#fetchedTo = offset
    const last = this.#unread.at(-1)
    if (last === undefined) this.watermark.readUpTo(offset)
    else last.end = offset
  }

  /** Drops what was fetched and not parsed, so that it is fetched again. */
  rewind(): void {
    this.#unread.length = 0
    this.#fetchedTo = this.watermark.readTo
  }

  /** The next record that is due. Throws when the fetched bytes are damaged; then call `rewind`. */
  take(nowMs: number): HeldRecord | null {
    if (this.isLost || this.isDraining) return null
    for (;;) {
      const held = this.queues.take(nowMs)
      if (held === null) {
        if (this.#hasRoom && !this.queues.isHeld && this.#readNext()) continue
        return null
      }
      const { dueMs } = this.watermark.retryStateOf(held.offset)
      if (dueMs <= nowMs) return held
      this.park(held, dueMs)
    }
  }

  /** It stays the first of its key, and may run again at `dueMs`. */
  park(held: HeldRecord, dueMs: number): void {
    held.record.detach()
    this.queues.park(held, dueMs)
  }

  get #hasRoom(): boolean {
    return !this.queues.isFull && !this.watermark.isFull
  }

  /** One record further. False when nothing is left to read. */
  #readNext(): boolean {
    const record = this.#unread[0]?.next() ?? null
    if (record === null) return false
    // A batch comes whole, also with what stands before the place that was asked for.
    if (record.at >= this.watermark.readTo) this.#add(record)
    this.#dropRead()
    return true
  }

  /** What has no records left is passed, with what was compacted away behind them and the marks of transactions. */
  #dropRead(): void {
    for (let [cursor] = this.#unread; cursor?.count === 0; [cursor] = this.#unread) {
      this.#unread.shift()
      this.watermark.readUpTo(cursor.end)
    }
  }

  #add(record: LoggedRecord): void {
    if (!this.watermark.read(record.at)) return
    const target = targetGroupOf(record)
    if (target !== null && target !== this.#group) {
      this.watermark.finish(record.at)
      return
    }
    if (!this.queues.add(new HeldRecord(record))) record.detach()
  }
}
