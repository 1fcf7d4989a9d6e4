import type { ConnectionPool } from '@platformatic/kafka'
import type { Clock } from '../../../time/clock.ts'
import { endOf, recordsIn, toLogRecord } from '../batch.ts'
import { type Client, clientOptions, isKafkaError, type RawConsumer } from '../driver.ts'
import type { PartitionName } from '../holding.ts'
import type { KafkaOptions } from '../options.ts'
import type { LogRecord } from './record.ts'

export interface OffsetRange {
  readonly from: bigint
  readonly to: bigint
  readonly max: number
}

const TRIES = 3
const AGAIN_MS = 200
const WAIT_MS = 500
const BYTES_MAX = 1_024 * 1_024
/** A guess at how large a letter is: whoever wants one is not sent a thousand. */
const LETTER_BYTES = 16 * 1_024

/**
 * Reads pieces of partitions that are known to be there, without a group. It is a client of its own, because a client
 * may ask a broker for one thing at a time, and who browses must not hold up who works.
 */
export class RangeReader {
  readonly #client: Client
  readonly #clock: Clock
  readonly #raw: RawConsumer
  readonly #pool: ConnectionPool
  #turn: Promise<unknown> = Promise.resolve()

  constructor(client: Client, options: KafkaOptions, clock: Clock) {
    this.#client = client
    this.#clock = clock
    const given = clientOptions(options)
    const requestTimeout = options.answerMs + WAIT_MS
    this.#raw = new client.Consumer<Buffer, Buffer, Buffer, Buffer>({
      ...given,
      requestTimeout,
      groupId: options.group,
      retries: 0,
    })
    this.#pool = new client.ConnectionPool(given.clientId, { connectTimeout: given.connectTimeout, requestTimeout })
  }

  /** Empty when there is nothing more in the range. */
  read(place: PartitionName, range: OffsetRange): Promise<readonly LogRecord[]> {
    const reading = this.#turn.then(() => this.#readNow(place, range))
    this.#turn = reading.catch(() => {})
    return reading
  }

  async #readNow(place: PartitionName, { from, to, max }: OffsetRange): Promise<readonly LogRecord[]> {
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

  async #fetch(place: PartitionName, from: bigint, range: Pick<OffsetRange, 'to' | 'max'>) {
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
    { topic, partition }: PartitionName,
    from: bigint,
    { to, max, isAgain }: Pick<OffsetRange, 'to' | 'max'> & { readonly isAgain: boolean },
  ): Promise<{ readonly records: readonly LogRecord[]; readonly end: bigint }> {
    // Another leader, or a topic of the same name that was created anew, is only seen by asking again.
    const metadata = await this.#raw.metadata({ topics: [topic], forceUpdate: isAgain })
    const known = metadata.topics.get(topic)
    const node = known?.partitions[partition]?.leader
    if (known === undefined || node === undefined)
      throw new Error(`the partition ${partition} of ${topic} has no leader`)
    const wanted = Number(to - from) < max ? Number(to - from) : max
    const { responses } = await this.#raw.fetch({
      ...{
        node,
        connectionPool: this.#pool,
        minBytes: 1,
        maxWaitTime: WAIT_MS,
        maxBytes: BYTES_MAX,
        isolationLevel: 0,
      },
      topics: [
        {
          topicId: known.id,
          partitions: [
            {
              ...{ partition, fetchOffset: from, currentLeaderEpoch: -1, lastFetchedEpoch: -1 },
              partitionMaxBytes: Math.min(BYTES_MAX, wanted * LETTER_BYTES),
            },
          ],
        },
      ],
    })
    const records: LogRecord[] = []
    let end = from
    for (const batch of responses.flatMap(({ partitions }) => partitions).flatMap(({ records: some }) => some ?? [])) {
      for (const one of recordsIn(batch)) {
        const record = toLogRecord({ topic, partition }, batch, one)
        if (record.offset >= from && record.offset < to && records.length < max) records.push(record)
      }
      end = endOf(batch)
    }
    return { records, end }
  }

  async close(): Promise<void> {
    await this.#pool.close()
    await this.#turn
    await this.#raw.close(true)
  }
}
