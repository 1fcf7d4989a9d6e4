import { PassingMap } from '../../engine/passing-map.ts'
import type { Hold } from './hold.ts'

/** A record that waits in memory. */
export interface Waiting {
  /** Records of one key run one after another; null runs beside everything. */
  readonly key: string | null
  readonly bytes: number
}

export interface LaneOptions {
  /** How many records may wait, be handed out or be parked before no more should be read. */
  readonly countMax: number
  readonly bytesMax: number
  readonly hold: Hold
}

interface Lane<Item> {
  readonly items: Item[]
  readonly key: string | null
}

interface Parked<Item> {
  readonly lane: Lane<Item>
  readonly dueMs: number
}

/**
 * The records of one partition in memory: those of one key in order, one at a time; different keys side by side. A key
 * whose first record waits for a retry is parked, and keeps back nobody but itself.
 */
export class Lanes<Item extends Waiting> {
  readonly #options: LaneOptions
  readonly #byKey = new Map<string, Lane<Item>>()
  /** Lanes whose first record may be handed out, in the order in which they became so. */
  readonly #ready: Lane<Item>[] = []
  #readyFrom = 0
  /** By due time, the earliest first. */
  readonly #parked: Parked<Item>[] = []
  readonly #out = new PassingMap<Item, Lane<Item>>()
  /** What was parked and is not finished: it holds the partition while it waits and while it runs again. */
  readonly #again = new Set<Item>()
  #count = 0
  #bytes = 0

  constructor(options: LaneOptions) {
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

  /** Behind everything of its key. */
  add(item: Item): void {
    this.#count += 1
    this.#bytes += item.bytes
    const waiting = item.key === null ? undefined : this.#byKey.get(item.key)
    if (waiting !== undefined) {
      waiting.items.push(item)
      return
    }
    const lane: Lane<Item> = { key: item.key, items: [item] }
    if (item.key !== null) this.#byKey.set(item.key, lane)
    this.#ready.push(lane)
  }

  /** The next record that may run now, or null. What was parked and is due again goes before what has never run. */
  take(nowMs: number): Item | null {
    const lane = this.#takeDue(nowMs) ?? (this.isHeld ? null : this.#takeReady())
    const item = lane?.items[0]
    if (lane === null || item === undefined) return null
    this.#out.set(item, lane)
    return item
  }

  /** The record is settled: the next of its key may run. False when it was not handed out. */
  finish(item: Item): boolean {
    const lane = this.#out.get(item)
    if (lane === undefined) return false
    this.#out.delete(item)
    this.#again.delete(item)
    lane.items.shift()
    this.#count -= 1
    this.#bytes -= item.bytes
    if (lane.items.length > 0) this.#ready.push(lane)
    else if (lane.key !== null) this.#byKey.delete(lane.key)
    return true
  }

  /** The record stays the first of its key and may run again at `dueMs`. False when it was not handed out. */
  park(item: Item, dueMs: number): boolean {
    const lane = this.#out.get(item)
    if (lane === undefined) return false
    this.#out.delete(item)
    this.#again.add(item)
    const at = this.#parked.findIndex((parked) => parked.dueMs > dueMs)
    this.#parked.splice(at === -1 ? this.#parked.length : at, 0, { lane, dueMs })
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

  /** Records that somebody works on. */
  get out(): number {
    return this.#out.size
  }

  /** Nothing but what holds the partition may be taken. */
  get isHeld(): boolean {
    return this.#options.hold === 'partition' && this.#again.size > 0
  }

  #takeDue(nowMs: number): Lane<Item> | null {
    const first = this.#parked[0]
    if (first === undefined || first.dueMs > nowMs) return null
    this.#parked.shift()
    return first.lane
  }

  #takeReady(): Lane<Item> | null {
    const lane = this.#ready[this.#readyFrom]
    if (lane === undefined) return null
    this.#readyFrom += 1
    // Moving the rest down at every step would cost the square of their number.
    if (this.#readyFrom >= 1_024 || this.#readyFrom === this.#ready.length) {
      this.#ready.splice(0, this.#readyFrom)
      this.#readyFrom = 0
    }
    return lane
  }
}
