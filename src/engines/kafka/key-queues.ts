import type { Hold } from './options.ts'

/** A record in memory. The queues keep its state in it, which saves a lookup. */
export abstract class QueuedRecord {
  /** Records of one key run one after another; null runs beside everything. */
  abstract readonly key: string | null
  abstract readonly bytes: number
  /** The next of its key. */
  next: this | null = null
  isTaken = false
  /** It was parked, and holds the partition while it waits and while it runs again. */
  isRetry = false
}

export interface KeyQueueOptions {
  /** How many records may wait, be handed out or be parked before no more should be read. */
  readonly countMax: number
  readonly bytesMax: number
  readonly hold: Hold
}

interface Parked<Item> {
  readonly item: Item
  readonly dueMs: number
}

/**
 * The records of one partition in memory: those of one key in order, one at a time; different keys side by side. A key
 * whose first record waits for a retry is parked, and blocks no other key.
 */
export class KeyQueues<Item extends QueuedRecord> {
  readonly #options: KeyQueueOptions
  /** The last record of each key. */
  readonly #last = new Map<string, Item>()
  /** First records of their keys that may be handed out, in the order in which they became so. */
  readonly #ready: Item[] = []
  #readyFrom = 0
  /** By due time, the earliest first. */
  readonly #parked: Parked<Item>[] = []
  #taken = 0
  #again = 0
  #count = 0
  #bytes = 0

  constructor(options: KeyQueueOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A fetch always lands whole, so the bounds are soft by one fetch. */
  get isFull(): boolean {
    return this.#count >= this.#options.countMax || this.#bytes >= this.#options.bytesMax
  }

  /** Behind everything of its key. True when it may be handed out. */
  add(item: Item): boolean {
    this.#count += 1
    this.#bytes += item.bytes
    if (item.key !== null) {
      const last = this.#last.get(item.key)
      this.#last.set(item.key, item)
      if (last !== undefined) {
        last.next = item
        return false
      }
    }
    this.#ready.push(item)
    return true
  }

  /** The next record that may run now, or null. What was parked and is due again goes before what has never run. */
  take(nowMs: number): Item | null {
    const item = this.#takeDue(nowMs) ?? (this.isHeld ? null : this.#takeReady())
    if (item === null) return null
    item.isTaken = true
    this.#taken += 1
    return item
  }

  /** The record is settled: the next of its key may run. False when it was not handed out. */
  finish(item: Item): boolean {
    if (!this.#takeBack(item)) return false
    if (item.isRetry) this.#again -= 1
    item.isRetry = false
    this.#count -= 1
    this.#bytes -= item.bytes
    if (item.next !== null) this.#ready.push(item.next)
    else if (item.key !== null) this.#last.delete(item.key)
    item.next = null
    return true
  }

  /** The record stays the first of its key and may run again at `dueMs`. False when it was not handed out. */
  park(item: Item, dueMs: number): boolean {
    if (!this.#takeBack(item)) return false
    if (!item.isRetry) this.#again += 1
    item.isRetry = true
    const at = this.#parked.findIndex((parked) => parked.dueMs > dueMs)
    this.#parked.splice(at === -1 ? this.#parked.length : at, 0, { item, dueMs })
    return true
  }

  #takeBack(item: Item): boolean {
    if (!item.isTaken) return false
    item.isTaken = false
    this.#taken -= 1
    return true
  }

  /** When the first parked record is due; infinite when none is parked. */
  get nextDueMs(): number {
    return this.#parked[0]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  /** Parked records, due or not. */
  get parked(): number {
    return this.#parked.length
  }

  /** Records that workers have taken. */
  get taken(): number {
    return this.#taken
  }

  /** Nothing but what holds the partition may be taken. */
  get isHeld(): boolean {
    return this.#options.hold === 'partition' && this.#again > 0
  }

  #takeDue(nowMs: number): Item | null {
    const first = this.#parked[0]
    if (first === undefined || first.dueMs > nowMs) return null
    this.#parked.shift()
    return first.item
  }

  #takeReady(): Item | null {
    // Mostly one is added and taken at once: a list that is emptied in any other way gives up its memory each time.
    if (this.#readyFrom === 0 && this.#ready.length === 1) return this.#ready.pop() ?? null
    const item = this.#ready[this.#readyFrom]
    if (item === undefined) return null
    this.#readyFrom += 1
    if (this.#readyFrom === this.#ready.length) {
      this.#ready.length = 0
      this.#readyFrom = 0
    }
    // Moving the rest down at every step would cost the square of their number.
    if (this.#readyFrom >= 1_024) {
      this.#ready.splice(0, this.#readyFrom)
      this.#readyFrom = 0
    }
    return item
  }
}
