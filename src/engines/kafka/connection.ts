import { EngineError, isMillraceError, messageOf } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { explaining } from './client-faults.ts'
import { BrokerLetterLog } from './dead-letters/broker-letter-log.ts'
import { type Admin, type Client, clientOptions, guarded, loadClient } from './driver.ts'
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

/** How often a call of the admin is repeated, and the first one when the engine is opened. */
const RETRIES = 3
const AGAIN_MS = 200

export async function connect(options: KafkaOptions, clock: Clock): Promise<Connection> {
  const client = await loadClient()
  const admin = explaining(new client.Admin({ ...clientOptions(options), retries: 0 }))
  guarded(admin.connections)
  try {
    await reach(admin, clock, options.answerMs)
  } catch (error) {
    await admin.close().catch(() => {})
    if (isRefused(error)) throw error
    const text = `no Kafka broker can be used at ${options.brokers.join(', ')}: ${messageOf(error)}`
    throw new EngineError('ERR_STORAGE_OPEN', text, { cause: error })
  }
  admin[client.kOptions].retries = RETRIES
  const producer = new RecordProducer(client, options, clock)
  const topics = new Topics(client, admin, { partitions: options.partitions, clock })
  const log = new BrokerLetterLog({ client, admin, producer, topics, options, clock })
  return { client, admin, producer, topics, log }
}

/** The client would repeat a login that was refused as well, and some servers lock a user out for that. */
async function reach(admin: Admin, clock: Clock, withinMs: number): Promise<void> {
  const untilMs = clock.monotonicMs() + withinMs
  for (let tries = 0; ; tries += 1) {
    try {
      await within(clock, Math.max(1, untilMs - clock.monotonicMs()), admin.metadata({ topics: [] }))
      return
    } catch (error) {
      if (isRefused(error) || tries === RETRIES || clock.monotonicMs() + AGAIN_MS >= untilMs) throw error
      await clock.sleep(AGAIN_MS)
    }
  }
}

/** A login, a certificate or a right: what was refused says more than where it was. */
function isRefused(error: unknown): boolean {
  return isMillraceError(error, 'ERR_STORAGE_OPEN', 'ERR_STORAGE_READONLY')
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
