import { EngineError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { BrokerLetterLog } from './dead-letters/broker-letter-log.ts'
import { type Admin, type Client, clientOptions, loadClient } from './driver.ts'
import { within } from './faults.ts'
import type { KafkaOptions } from './options.ts'
import { RecordProducer } from './producer.ts'
import { Topics } from './topics.ts'

/** What is open towards the brokers, apart from the members of groups. */
export interface Connection {
  readonly client: Client
  readonly admin: Admin
  readonly producer: RecordProducer
  readonly topics: Topics
  readonly log: BrokerLetterLog
}

export async function connect(options: KafkaOptions, clock: Clock): Promise<Connection> {
  const client = await loadClient()
  const admin = new client.Admin({ ...clientOptions(options), retries: 3 })
  try {
    await within(clock, options.answerMs, admin.metadata({ topics: [] }))
  } catch (error) {
    await admin.close().catch(() => {})
    const where = options.brokers.join(', ')
    throw new EngineError('ERR_STORAGE_OPEN', `no Kafka broker answers at ${where}; start one, or correct the URL`, {
      cause: error,
    })
  }
  const producer = new RecordProducer(client, options, clock)
  const topics = new Topics(client, admin, { partitions: options.partitions, clock })
  const log = new BrokerLetterLog({ client, admin, producer, topics, options, clock })
  return { client, admin, producer, topics, log }
}

/** Ends within the time that a call may take, also when no broker answers. */
export async function disconnect(
  { admin, producer, log }: Connection,
  { answerMs }: KafkaOptions,
  clock: Clock,
): Promise<void> {
  const closing = Promise.allSettled([producer.close(), log.close(), admin.close()])
  await within(clock, answerMs, closing).catch(() => {})
}
