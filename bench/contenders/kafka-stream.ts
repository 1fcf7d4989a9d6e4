/** The stream of @platformatic/kafka, the client that Millrace uses the lower half of, as its documentation has it. */
import { Consumer, jsonDeserializer, jsonSerializer, Producer, stringDeserializer } from '@platformatic/kafka'
import type { Contender, Place, Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'
import { addressOf, groupOf, lagOf, topicOf } from '../servers/kafka.ts'

const COMMIT_EVERY_MS = 100

class KafkaStream implements Contender {
  readonly bulkSize = 1_000
  #url = ''
  #producer: Producer<Buffer, Payload, Buffer, Buffer> | null = null

  async setup({ url }: Place): Promise<void> {
    if (url === null) throw new Error('the stream needs a broker')
    this.#url = url
    this.#producer = new Producer<Buffer, Payload, Buffer, Buffer>({
      ...this.#options,
      serializers: { value: jsonSerializer<Payload> },
      acks: -1,
    })
    await this.#producer.connectToBrokers()
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.enqueueBulk([payload])
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const topic = topicOf(this.#url)
    await this.#opened.send({ messages: payloads.map((value) => ({ topic, value })) })
  }

  async work({ onJob, onError }: WorkRequest): Promise<Working> {
    const topic = topicOf(this.#url)
    const consumer = new Consumer<string, Payload, string, string>({
      ...this.#options,
      groupId: groupOf(this.#url),
      deserializers: { key: stringDeserializer, value: jsonDeserializer<Payload> },
    })
    const stream = await consumer.consume({
      topics: [topic],
      mode: 'committed',
      fallbackMode: 'earliest',
      autocommit: COMMIT_EVERY_MS,
    })
    stream.on('error', onError)
    stream.on('data', ({ value }) => {
      const running = onJob(value)
      if (running === undefined) return
      stream.pause()
      running.catch(onError).finally(() => stream.resume())
    })
    return {
      stop: async () => {
        await stream.close()
        await consumer.close()
      },
    }
  }

  remaining(): Promise<number> {
    return lagOf(this.#url)
  }

  async teardown(): Promise<void> {
    await this.#opened.close()
  }

  get #options() {
    return { clientId: 'bench', bootstrapBrokers: [addressOf(this.#url)] }
  }

  get #opened(): Producer<Buffer, Payload, Buffer, Buffer> {
    if (this.#producer === null) throw new Error('setup comes first')
    return this.#producer
  }
}

export function create(): Contender {
  return new KafkaStream()
}
