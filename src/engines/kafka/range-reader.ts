import type { Clock } from '../../time/clock.ts'
import { type Client, isKafkaError } from './driver.ts'
import { FetchClient } from './fetch-client.ts'
import type { Isolation, KafkaOptions } from './options.ts'
import type { LogRecord, PartitionName } from './record.ts'
import { RecordCursor } from './record-cursor.ts'

export interface ReadRange {
  readonly from: bigint
  readonly to: bigint
  readonly max: number
}

const TRIES = 3
const AGAIN_MS = 200
const WAIT_MS = 500
const BYTES_MAX = 1_024 * 1_024
/** A guess at the size of a letter, so that a read of one does not fetch a thousand. */
const LETTER_BYTES = 16 * 1_024

/**
 * Reads ranges of partitions without a group. It has its own client, because a client has one fetch at a time per broker,
 * and browsing must not delay workers.
 */
export class RangeReader {
  readonly #client: Client
  readonly #clock: Clock
  readonly #calls: FetchClient
  #turn: Promise<unknown> = Promise.resolve()

  /** Nothing is written in transactions to topics of our own; those of jobs are read as workers read them. */
  constructor(client: Client, options: KafkaOptions, clock: Clock, isolation: Isolation = 'read_uncommitted') {
    this.#client = client
    this.#clock = clock
    this.#calls = new FetchClient(client, options, WAIT_MS, isolation)
  }

  /** Empty when there is nothing more in the range. */
  read(place: PartitionName, range: ReadRange): Promise<readonly LogRecord[]> {
    const reading = this.#turn.then(() => this.#readNow(place, range))
    this.#turn = reading.catch(() => {})
    return reading
  }

  async #readNow(place: PartitionName, { from, to, max }: ReadRange): Promise<readonly LogRecord[]> {
    const found: LogRecord[] = []
    // A fetch may bring nothing that is wanted: the marks of transactions, or the rest of a batch that was compacted.
    for (let next = from; next < to && found.length === 0; ) {
      const { records, end } = await this.#fetch(place, next, { to, max })
      found.push(...records)
      if (end <= next) break
      next = end
    }
    return found
  }

  async #fetch(place: PartitionName, from: bigint, range: Pick<ReadRange, 'to' | 'max'>) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#fetchOnce(place, from, { ...range, isAgain: tries > 1 })
      } catch (error) {
        // It was cut off meanwhile.
        if (isKafkaError(this.#client, error, 'OFFSET_OUT_OF_RANGE')) return { records: [], end: from }
        if (tries === TRIES) throw error
        await this.#clock.sleep(AGAIN_MS)
      }
    }
  }

  async #fetchOnce(
    place: PartitionName,
    from: bigint,
    { to, max, isAgain }: Pick<ReadRange, 'to' | 'max'> & { readonly isAgain: boolean },
  ): Promise<{ readonly records: readonly LogRecord[]; readonly end: bigint }> {
    const { topic, partition } = place
    // Another leader, or a topic of the same name that was created anew, is only seen by asking again.
    const metadata = await this.#calls.metadata([topic], isAgain)
    const found = metadata.topics.get(topic)
    const node = found?.partitions[partition]?.leader
    if (found === undefined || node === undefined)
      throw new Error(`the partition ${partition} of ${topic} has no leader`)
    const bytesMax = Math.min(BYTES_MAX, Math.min(Number(to - from), max) * LETTER_BYTES)
    const wanted = { topic, topicId: found.id, partition, from: Number(from), bytesMax }
    const [fetched] = await this.#calls.fetch(metadata, node, [wanted], { waitMs: WAIT_MS, bytesMax: BYTES_MAX })
    if (fetched === undefined || fetched.batches === null) {
      if (fetched !== undefined && fetched.errorCode !== 0) throw new this.#client.ProtocolError(fetched.errorCode)
      return { records: [], end: from }
    }
    const cursor = new RecordCursor(this.#client, place, fetched.batches, wanted.from, fetched.aborted)
    const records: LogRecord[] = []
    for (let record = cursor.next(); record !== null && records.length < max; record = cursor.next())
      if (record.offset >= from && record.offset < to) records.push(record)
    return { records, end: BigInt(cursor.end) }
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#calls.close(), this.#turn])
  }
}
