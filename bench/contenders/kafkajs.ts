/** kafkajs, with `eachMessage` as its documentation has it. */
import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import type { Contender, Place, Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'
import { addressOf, groupOf, lagOf, PARTITIONS, topicOf } from '../servers/kafka.ts'

class Kafkajs implements Contender {
  readonly bulkSize = 1_000
  #url = ''
  #kafka: Kafka | null = null
  #producer: Producer | null = null

  async setup({ url }: Place): Promise<void> {
    if (url === null) throw new Error('kafkajs needs a broker')
    this.#url = url
    this.#kafka = new Kafka({ clientId: 'bench', brokers: [addressOf(url)], logLevel: logLevel.NOTHING })
    this.#producer = this.#kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await this.#producer.connect()
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.enqueueBulk([payload])
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const messages = payloads.map((payload) => ({ value: JSON.stringify(payload) }))
    await this.#opened.producer.send({ topic: topicOf(this.#url), acks: -1, messages })
  }

  async work({ onJob, onError }: WorkRequest): Promise<Working> {
    const consumer = this.#opened.kafka.consumer({ groupId: groupOf(this.#url) })
    consumer.on('consumer.crash', ({ payload }) => onError(payload.error))
    await consumer.connect()
    await consumer.subscribe({ topics: [topicOf(this.#url)], fromBeginning: true })
    await consumer.run({
      partitionsConsumedConcurrently: PARTITIONS,
      eachMessage: async ({ message }) => onJob(JSON.parse(String(message.value))),
    })
    return { stop: () => consumer.disconnect() }
  }

  /** It does not commit past the mark of a transaction, which is the last of every partition after a drain. */
  async remaining(): Promise<number> {
    const lag = await lagOf(this.#url)
    return lag === PARTITIONS ? 0 : lag
  }

  async teardown(): Promise<void> {
    await this.#opened.producer.disconnect()
  }

  get #opened(): { readonly kafka: Kafka; readonly producer: Producer } {
    if (this.#kafka === null || this.#producer === null) throw new Error('setup comes first')
    return { kafka: this.#kafka, producer: this.#producer }
  }
}

export function create(): Contender {
  return new Kafkajs()
}
