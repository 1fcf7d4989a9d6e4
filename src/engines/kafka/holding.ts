import { isForAnotherGroup } from './dead-letters/headers.ts'
import type { LogRecord } from './dead-letters/record.ts'
import type { Hold } from './hold.ts'
import { Lanes } from './lanes.ts'
import { laneOf } from './record.ts'
import { Watermark } from './watermark.ts'

/** Under which membership a partition is held: a commit is made with it, and refused when it is over. */
export interface Epoch {
  readonly generationId: number
  readonly memberId: string
}

export interface PartitionName {
  readonly topic: string
  readonly partition: number
}

export function nameOf({ topic, partition }: PartitionName): string {
  return `${topic}/${partition}`
}

/** A record in memory. */
export interface Held {
  readonly record: LogRecord
  readonly key: string | null
  readonly bytes: number
}

const COUNT_MAX = 4_096
const BYTES_MAX = 16 * 1_024 * 1_024

/** One partition that this member owns, from its assignment to its loss. */
export class Holding implements PartitionName {
  readonly topic: string
  readonly partition: number
  readonly watermark: Watermark
  readonly lanes: Lanes<Held>
  epoch: Epoch
  /** Whether something is to be committed that is not yet. */
  isDirty = false
  /** It moves to another member: what runs may finish, and nothing else starts. */
  isDraining = false
  /** It belongs to somebody else: nothing that was handed out counts any more. */
  isLost = false
  readonly #group: string
  readonly #doubtfulBelow: bigint

  constructor(
    { topic, partition }: PartitionName,
    start: { readonly offset: bigint; readonly metadata: string | null; readonly doubtfulBelow: bigint },
    options: { readonly epoch: Epoch; readonly hold: Hold; readonly group: string },
  ) {
    this.topic = topic
    this.partition = partition
    this.watermark = new Watermark(start.offset, start.metadata)
    this.lanes = new Lanes({ countMax: COUNT_MAX, bytesMax: BYTES_MAX, hold: options.hold })
    this.epoch = options.epoch
    this.#group = options.group
    this.#doubtfulBelow = start.doubtfulBelow
  }

  /**
   * Whether this start is to be stored before it begins. A first start is told to the broker a moment later, so a
   * crash may forget it; one that may not be the first would then be forgotten again and again.
   */
  isRisky(offset: bigint, attempt: number): boolean {
    return attempt > 1 || offset < this.#doubtfulBelow
  }

  /** Whether more of it should be fetched. */
  get isHungry(): boolean {
    return !this.isLost && !this.isDraining && !this.lanes.isFull && !this.watermark.isFull
  }

  add(record: LogRecord): void {
    if (record.offset < this.watermark.readTo) return
    if (!this.watermark.read(record.offset)) return
    if (isForAnotherGroup(record.headers, this.#group)) {
      this.watermark.finish(record.offset)
      return
    }
    const bytes = (record.key?.length ?? 0) + (record.value?.length ?? 0)
    this.lanes.add({ record, key: laneOf(record), bytes })
  }

  /** The next record that is due now. */
  take(nowMs: number): Held | null {
    if (this.isLost || this.isDraining) return null
    for (;;) {
      const held = this.lanes.take(nowMs)
      if (held === null) return null
      const { dueMs } = this.watermark.trialOf(held.record.offset)
      if (dueMs <= nowMs) return held
      this.lanes.park(held, dueMs)
    }
  }
}
