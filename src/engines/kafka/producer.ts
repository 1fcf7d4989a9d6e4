import { EngineError, isMillraceError, messageOf } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import type { NewRecord } from './dead-letters/record.ts'
import { within } from './deadline.ts'
import { type Client, clientOptions, isKafkaError, type RawProducer } from './driver.ts'
import type { KafkaOptions } from './options.ts'

interface Pending {
  readonly records: readonly NewRecord[]
  resolve(): void
  reject(error: unknown): void
}

/** What waits for a broker that is away is bounded in time: after it a call is answered by an error. */
const ATTEMPTS = 5

/**
 * Writes records with acks=all and without duplicates of its own. Calls of one turn of the event loop go out together,
 * because a call by itself costs as much as a thousand records. The client would wait for a broker for ever, so every
 * call has a deadline; what it was given up for may still have been written.
 */
export class RecordProducer {
  readonly #raw: RawProducer
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
    this.#raw = new client.Producer<Buffer, Buffer, Buffer, Buffer>({
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

  async #flush(): Promise<void> {
    const batch = this.#pending
    this.#pending = []
    this.#isScheduled = false
    try {
      const sending = this.#sendNow(batch.flatMap(({ records }) => records))
      await within(this.#clock, this.#answerMs, sending, 'the records may still be written')
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(this.#explain(error))
    }
  }

  async #sendNow(records: readonly NewRecord[]): Promise<void> {
    await this.#raw.send({
      messages: records.map(({ topic, partition, key, value, headers }) => ({
        topic,
        ...(partition !== undefined && { partition }),
        ...(key !== null && { key }),
        ...(value !== null && { value }),
        headers: new Map([...headers].map(([name, bytes]) => [Buffer.from(name), bytes])),
      })),
    })
  }

  #explain(error: unknown): unknown {
    if (isMillraceError(error)) return error
    const text = messageOf(error)
    if (isKafkaError(this.#client, error, 'MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'))
      return new EngineError(
        'ERR_STORAGE_FAILED',
        `a record is larger than the topic takes; raise its max.message.bytes`,
        { cause: error },
      )
    return new EngineError('ERR_STORAGE_FAILED', `Kafka did not take the records: ${text}`, { cause: error })
  }

  async close(): Promise<void> {
    await this.#raw.close(true)
  }
}
