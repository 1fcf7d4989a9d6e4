import { targetGroupOf } from './job-record.ts'
import { KeyQueues, QueuedRecord } from './key-queues.ts'
import type { LoggedRecord } from './logged-record.ts'
import type { StartingPoint } from './offsets.ts'
import type { Hold } from './options.ts'
import type { PartitionName } from './record.ts'
import type { RecordCursor } from './record-cursor.ts'
import { Watermark } from './watermark.ts'

/** Under which membership a partition is held: a commit is made with it, and refused when it is over. */
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
/** With less than this in hand, more is fetched while it is worked on. */
const HUNGRY_BYTES = 512 * 1_024

/** One partition that this member owns, from its assignment to its loss. */
export class OwnedPartition implements PartitionName {
  /** As the group gave it to us. */
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
  /** It moves to another member: what runs may finish, and nothing else starts. */
  isDraining = false
  /** It belongs to somebody else: nothing that was handed out counts any more. */
  isLost = false
  readonly #group: string
  readonly #doubtfulBelow: number
  /** Fetched and not read: reading happens when somebody can take what is read. */
  readonly #unread: RecordCursor[] = []
  #unreadBytes = 0
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

  /** Whether the topic that has its name now is another one. Undefined where it is not known. */
  isOtherTopic(topicId: string | undefined): boolean {
    return topicId !== undefined && topicId !== this.topicId
  }

  /** True once whenever records in retry begin to keep the others from being read. */
  becomesFull(): boolean {
    const wasFull = this.#wasFull
    this.#wasFull = this.watermark.isFullOfRetries
    return this.#wasFull && !wasFull
  }

  /** Whether more of it should be fetched. */
  get wantsMore(): boolean {
    return this.#unreadBytes < HUNGRY_BYTES && this.#hasRoom && !this.isLost && !this.isDraining
  }

  /** Where fetching goes on. */
  get fetchedTo(): number {
    return this.#fetchedTo
  }

  /** Whether something is in hand that nobody works on. */
  get isWaiting(): boolean {
    return this.#unread.length > 0 || this.queues.count > this.queues.taken
  }

  /** What was fetched from `fetchedTo` on. False when it brings no record. */
  feed(cursor: RecordCursor): boolean {
    const isAny = cursor.count > 0
    this.#fetchedTo = cursor.end
    this.#unread.push(cursor)
    this.#unreadBytes += cursor.bytes
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

  /** Forgets what was fetched and not read: it is to be fetched again. */
  rewind(): void {
    this.#unread.length = 0
    this.#unreadBytes = 0
    this.#fetchedTo = this.watermark.readTo
  }

  /** The next record that is due now. Throws when the log is no log; then `rewind`. */
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
      this.#unreadBytes -= cursor.bytes
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
