import { type Cursor, readVarint } from './logged-record.ts'

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
