import type { Client } from './driver.ts'
import { type Cursor, LoggedRecord, type RecordPlace, readVarint } from './logged-record.ts'
import type { PartitionName } from './record.ts'

/** How the head of a batch is laid out. */
const LENGTH_AT = 8
const HEAD_BYTES = 12
const MAGIC_AT = 16
const ATTRIBUTES_AT = 21
const LAST_DELTA_AT = 23
const FIRST_TIME_AT = 27
const LAST_TIME_AT = 35
const PRODUCER_ID_AT = 43
const COUNT_AT = 57
const RECORDS_AT = 61
const MAGIC = 2
const COMPRESSION = 0b111
const APPEND_TIME = 1 << 3
const TRANSACTIONAL = 1 << 4
const CONTROL = 1 << 5

const NOTHING = Buffer.alloc(0)
const NONE: readonly AbortedTransaction[] = []

/** The records of a piece of a partition's log, as the broker sent it, each read when it is asked for. */
export class RecordCursor {
  /** Records that it has still to bring: those of whole batches, without the marks of transactions and what was aborted. */
  count: number
  /** Where the log goes on behind it, also where the last records were compacted away. */
  end: number
  readonly #client: Client
  readonly #place: RecordPlace
  readonly #batches: Buffer
  /** Where batches begin that were aborted. Null where the broker tells of no abort, as nearly always. */
  readonly #aborted: Set<number> | null
  #nextBatchAt = 0
  #batchesEnd = 0
  #records: Cursor = { bytes: NOTHING, at: 0 }
  #left = 0
  #firstOffset = 0
  #firstTimeMs = 0
  /** The broker's own time of all records of the batch, where the topic says so. */
  #appendedAtMs: number | null = null

  /** `from`: what was asked for. A batch comes whole, also with what stands before. `aborted`: as the broker told it. */
  constructor(client: Client, place: PartitionName, batches: Buffer, from: number, aborted = NONE) {
    this.#client = client
    this.#place = { topic: place.topic, partition: place.partition, prefix: `${place.topic}:${place.partition}:` }
    this.#batches = batches
    this.end = from
    const filter = aborted.length === 0 ? null : new AbortFilter(aborted)
    this.#aborted = filter === null ? null : new Set()
    let count = 0
    for (let at = 0; at + HEAD_BYTES <= batches.length; at = this.#batchesEnd) {
      const end = at + HEAD_BYTES + batches.readInt32BE(at + LENGTH_AT)
      if (end < at + RECORDS_AT) throw new RangeError(`a batch of ${place.topic} is shorter than its own head`)
      // A bound on bytes may cut the last batch; it comes whole with the next fetch.
      if (end > batches.length) break
      if (batches[at + MAGIC_AT] !== MAGIC)
        throw new RangeError(`the log of ${place.topic} is in a format of before 2017`)
      this.#batchesEnd = end
      const next = int64(batches, at) + batches.readInt32BE(at + LAST_DELTA_AT) + 1
      this.end = Math.max(from, next)
      if (filter !== null && isDropped(filter, batches, at, next - 1)) this.#aborted?.add(at)
      else if (!isControl(batches, at)) count += batches.readInt32BE(at + COUNT_AT)
    }
    this.count = count
  }

  /** Bytes that are still to be read. */
  get unreadBytes(): number {
    return this.#batchesEnd - this.#nextBatchAt + this.#records.bytes.length - this.#records.at
  }

  next(): LoggedRecord | null {
    while (this.#left === 0) if (!this.#openBatch()) return null
    this.#left -= 1
    this.count -= 1
    const records = this.#records
    const length = readVarint(records)
    const end = records.at + length
    // Its attributes are unused.
    records.at += 1
    const timeDelta = readVarint(records)
    const offset = this.#firstOffset + readVarint(records)
    const timestampMs = this.#appendedAtMs ?? this.#firstTimeMs + timeDelta
    const record = new LoggedRecord(this.#place, offset, timestampMs, records, end)
    records.at = end
    return record
  }

  /** False at the end. */
  #openBatch(): boolean {
    const at = this.#nextBatchAt
    if (at >= this.#batchesEnd) return false
    const batches = this.#batches
    const attributes = batches.readInt16BE(at + ATTRIBUTES_AT)
    this.#nextBatchAt = at + HEAD_BYTES + batches.readInt32BE(at + LENGTH_AT)
    if (isControl(batches, at) || this.#aborted?.has(at) === true) return true
    this.#left = batches.readInt32BE(at + COUNT_AT)
    this.#firstOffset = int64(batches, at)
    this.#firstTimeMs = int64(batches, at + FIRST_TIME_AT)
    this.#appendedAtMs = (attributes & APPEND_TIME) === 0 ? null : int64(batches, at + LAST_TIME_AT)
    const records = batches.subarray(at + RECORDS_AT, this.#nextBatchAt)
    this.#records = { bytes: this.#decompress(records, attributes & COMPRESSION), at: 0 }
    return true
  }

  #decompress(bytes: Buffer, bitmask: number): Buffer {
    if (bitmask === 0) return bytes
    const algorithm = Object.values(this.#client.compressionsAlgorithms).find((known) => known.bitmask === bitmask)
    if (algorithm === undefined) throw new RangeError(`the log of ${this.#place.topic} is compressed in an unknown way`)
    return algorithm.decompressSync(bytes)
  }
}

function isControl(batches: Buffer, at: number): boolean {
  return (batches.readInt16BE(at + ATTRIBUTES_AT) & CONTROL) !== 0
}

function isDropped(filter: AbortFilter, batches: Buffer, at: number, lastOffset: number): boolean {
  const producerId = batches.readBigInt64BE(at + PRODUCER_ID_AT)
  const isTransactional = (batches.readInt16BE(at + ATTRIBUTES_AT) & TRANSACTIONAL) !== 0
  const head = { lastOffset, producerId, isTransactional, isControl: isControl(batches, at) }
  return filter.drops(head, batches.readInt32BE(at + COUNT_AT) === 0 ? null : { bytes: batches, at: at + RECORDS_AT })
}

/** Offsets and times are far below 2^53. */
function int64(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at) * 0x1_0000_0000 + bytes.readUInt32BE(at + 4)
}

/** A transaction that was aborted, as a broker tells it with a fetch: records of the producer from this offset on. */
export interface AbortedTransaction {
  readonly producerId: bigint
  readonly firstOffset: number
}

/** What a batch's head says of its transaction. */
export interface BatchHead {
  readonly lastOffset: number
  readonly producerId: bigint
  readonly isTransactional: boolean
  /** It holds the mark that ends a transaction, and not records. */
  readonly isControl: boolean
}

/** The key of a mark: its version, then what it says. */
const MARK_TYPE_AT = 2
const ABORT = 0

/**
 * Which batches of one fetch were aborted. It has to be asked in the order of the log, because an abort is of the records
 * of its producer up to its mark: those of the producer's next transaction may count.
 */
export class AbortFilter {
  /** In order. A transaction may have begun before the offset that was asked for. */
  readonly #transactions: readonly AbortedTransaction[]
  #next = 0
  readonly #producers = new Set<bigint>()

  constructor(transactions: readonly AbortedTransaction[]) {
    this.#transactions = transactions.toSorted((one, other) => one.firstOffset - other.firstOffset)
  }

  /** `records`: those of the batch, of which only a mark is looked at; null where compaction has left none. */
  drops({ lastOffset, producerId, isTransactional, isControl }: BatchHead, records: Cursor | null): boolean {
    if (!isTransactional) return false
    for (let begun = this.#transactions[this.#next]; begun !== undefined; begun = this.#transactions[this.#next]) {
      if (begun.firstOffset > lastOffset) break
      this.#producers.add(begun.producerId)
      this.#next += 1
    }
    if (!isControl) return this.#producers.has(producerId)
    if (records !== null && isAbort(records)) this.#producers.delete(producerId)
    return false
  }
}

/** Reads the key of the first record. */
function isAbort(records: Cursor): boolean {
  // The record's length.
  readVarint(records)
  // Its attributes are unused.
  records.at += 1
  // The differences of its time and its offset to those of the batch, and the length of its key.
  for (let field = 0; field < 3; field += 1) readVarint(records)
  return records.bytes.readInt16BE(records.at + MARK_TYPE_AT) === ABORT
}
