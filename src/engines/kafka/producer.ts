import { EngineError, isMillraceError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { toEngineError } from './client-faults.ts'
import { type Client, clientOptions, guarded, isKafkaError, type RawProducer } from './driver.ts'
import { within } from './faults.ts'
import type { KafkaOptions } from './options.ts'
import { ProducerPool } from './producer-pool.ts'
import type { NewRecord, RecordHeaders } from './record.ts'

interface Pending {
  readonly records: readonly NewRecord[]
  resolve(): void
  reject(error: unknown): void
}

/** What goes out in one request, and whose it is. */
interface ProduceBatch {
  readonly records: NewRecord[]
  readonly calls: Set<Pending>
  bytes: number
}

/** How long a call waits for an unreachable broker before it rejects. */
const ATTEMPTS = 5
/**
 * A broker takes the records of a partition in one request together or not at all, and by default no more than a
 * megabyte of them.
 */
export const BATCH_BYTES_MAX = 768 * 1_024
/** What a record takes beside its key, value and headers, at most. */
const RECORD_BYTES = 64

/**
 * When a topic was made again with fewer partitions, the client looks in fresh metadata for one that is gone and throws
 * where nothing catches it, which would end the process. The call fails instead, and the next one knows the partitions.
 */
function catchThrows(client: Client, producer: RawProducer): void {
  const ask = producer[client.kMetadata].bind(producer)
  producer[client.kMetadata] = (options, callback) =>
    ask(options, (error, metadata) => {
      try {
        callback(error, metadata)
      } catch (cause) {
        callback(
          new EngineError('ERR_STORAGE_BUSY', 'a topic has other partitions now; try again', { cause }),
          metadata,
        )
      }
    })
}

/**
 * Writes records with acks=all and without duplicates of its own. Calls of one turn of the event loop go out together,
 * because a call by itself costs as much as a thousand records. The client would wait for a broker for ever, so every
 * call has a deadline; what it was given up for may still have been written.
 */
export class RecordProducer {
  readonly #pool: ProducerPool
  readonly #client: Client
  readonly #clock: Clock
  readonly #answerMs: number
  #pending: Pending[] = []
  #isScheduled = false
  #turn = 0

  constructor(client: Client, options: KafkaOptions, clock: Clock) {
    this.#client = client
    this.#clock = clock
    this.#answerMs = options.answerMs
    this.#pool = new ProducerPool(() => this.#open(options))
  }

  #open(options: KafkaOptions): RawProducer {
    const client = this.#client
    const producer = new client.Producer<Buffer, Buffer, Buffer, Buffer>({
      ...clientOptions(options),
      idempotent: true,
      acks: client.ProduceAcks.ALL,
      retries: ATTEMPTS,
      autocreateTopics: false,
      partitioner: (record, key) => {
        this.#turn += 1
        // As the Java client does it; the default of this one would send a key elsewhere than other programs do.
        return key === undefined ? this.#turn : client.compatibilityPartitioner(record, key)
      },
    })
    guarded(producer.connections)
    catchThrows(client, producer)
    return producer
  }

  /** Resolves when all are written. A rejection means unknown: some or all of them may have been. */
  send(records: readonly NewRecord[]): Promise<void> {
    if (records.length === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#pending.push({ records, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      setImmediate(() => void this.#flush())
    })
  }

  /**
   * The same in a separate request: an error affects no other records, and those of one partition are
   * written together or not at all. Answers where they stand, as far as the broker has said so.
   */
  async sendAlone(records: readonly NewRecord[]): Promise<readonly { partition: number; offset: bigint }[]> {
    if (records.length === 0) return []
    try {
      return await this.#sendNow(records)
    } catch (error) {
      if (records.length > 1 || !this.isTooLarge(error)) throw this.#explain(error)
    }
    try {
      // What counts is the size on the wire; one that came compressed may not fit otherwise. Every client reads gzip.
      return await this.#sendNow(records, { compression: 'gzip' })
    } catch (error) {
      throw this.#explain(error)
    }
  }

  /** Whether records were refused because they are larger than their topic takes. Of one topic none was written then. */
  isTooLarge(error: unknown): boolean {
    return isKafkaError(this.#client, error, 'MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE')
  }

  /** One after another, so that records are written in the order in which they were given. */
  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const calls = this.#pending
      this.#pending = []
      await this.#write(calls)
    }
    this.#isScheduled = false
  }

  async #write(calls: readonly Pending[]): Promise<void> {
    const failed = new Set<Pending>()
    for (const batch of batchesOf(calls)) {
      // Of a call whose beginning was refused the rest is not written either.
      if ([...batch.calls].every((call) => failed.has(call))) continue
      try {
        await this.sendAlone(batch.records)
      } catch (error) {
        for (const call of batch.calls) {
          failed.add(call)
          call.reject(error)
        }
      }
    }
    for (const call of calls) if (!failed.has(call)) call.resolve()
  }

  async #sendNow(
    records: readonly NewRecord[],
    options: { compression?: 'gzip' } = {},
  ): Promise<readonly { partition: number; offset: bigint }[]> {
    const untilMs = this.#clock.monotonicMs() + this.#answerMs
    const taking = this.#pool.take()
    const producer = await within(this.#clock, this.#answerMs, taking, 'earlier records are not written yet').catch(
      (error: unknown) => {
        void taking.then((late) => this.#pool.giveBack(late))
        throw error
      },
    )
    const sending = producer.send({
      ...options,
      messages: records.map(({ topic, partition, key, value, headers }) => ({
        topic,
        ...(partition !== undefined && { partition }),
        ...(key !== null && { key }),
        ...(value !== null && { value }),
        headers: writtenHeaders(headers),
      })),
    })
    try {
      const leftMs = Math.max(1, untilMs - this.#clock.monotonicMs())
      const { offsets = [] } = await within(this.#clock, leftMs, sending, 'the records may still be written')
      this.#pool.giveBack(producer)
      return offsets
    } catch (error) {
      this.#pool.giveUp(producer, sending)
      throw error
    }
  }

  #explain(error: unknown): unknown {
    if (isMillraceError(error)) return error
    if (this.isTooLarge(error))
      return new EngineError(
        'ERR_STORAGE_FAILED',
        `a record is larger than the topic takes; raise its max.message.bytes`,
        { cause: error },
      )
    return toEngineError(error)
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }
}

/** The client takes a map and writes null as null. Its names are objects, so two that are alike are both there. */
function writtenHeaders(headers: RecordHeaders): Map<Buffer, Buffer> {
  const written = new Map<Buffer, Buffer | null>()
  for (const [name, value] of headers) written.set(Buffer.from(name), value)
  // Its types do not know null, which it writes all the same.
  return written as Map<Buffer, Buffer>
}

/** What a record takes in a request, at most. */
export function bytesOf({ key, value, headers }: NewRecord): number {
  let bytes = RECORD_BYTES + (key?.length ?? 0) + (value?.length ?? 0)
  for (const [name, header] of headers) bytes += name.length * 3 + (header?.length ?? 0) + 8
  return bytes
}

/** In the order of the calls. A call that fits into one portion is not torn apart. */
function batchesOf(calls: readonly Pending[]): readonly ProduceBatch[] {
  const batches: ProduceBatch[] = []
  let last: ProduceBatch | undefined
  const begin = (): ProduceBatch => {
    last = { records: [], calls: new Set(), bytes: 0 }
    batches.push(last)
    return last
  }
  for (const call of calls) {
    const sizes = call.records.map(bytesOf)
    const total = sizes.reduce((sum, bytes) => sum + bytes, 0)
    let batch = last === undefined || last.bytes + total > BATCH_BYTES_MAX ? begin() : last
    for (const [index, record] of call.records.entries()) {
      const bytes = sizes[index] ?? 0
      if (batch.bytes > 0 && batch.bytes + bytes > BATCH_BYTES_MAX) batch = begin()
      batch.records.push(record)
      batch.calls.add(call)
      batch.bytes += bytes
    }
  }
  return batches
}
