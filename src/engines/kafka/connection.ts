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
  /** With the broker first that answered. */
  readonly options: KafkaOptions
}

/** How often a call of the admin is repeated, and the first one when the engine is opened. */
const RETRIES = 3
const AGAIN_MS = 200

export async function connect(given: KafkaOptions, clock: Clock): Promise<Connection> {
  const client = await loadClient()
  const { admin, options } = await reach(client, given, clock)
  admin[client.kOptions].retries = RETRIES
  const producer = new RecordProducer(client, options, clock)
  const topics = new Topics(client, admin, { partitions: options.partitions, clock })
  const log = new BrokerLetterLog({ client, admin, producer, topics, options, clock })
  return { client, admin, producer, topics, log, options }
}

type Reached = Pick<Connection, 'admin' | 'options'>

/**
 * The client goes on to the next broker only when one cannot be connected to; one that hangs, or closes every connection, would
 * keep it from all others. It would also repeat a login that was refused, and some servers lock a user out for that.
 */
async function reach(client: Client, given: KafkaOptions, clock: Clock): Promise<Reached> {
  const { brokers, answerMs } = given
  const untilMs = clock.monotonicMs() + answerMs
  const triesMax = Math.max(RETRIES + 1, brokers.length)
  for (let tries = 1; ; tries += 1) {
    const first = (tries - 1) % brokers.length
    const options = { ...given, brokers: [...brokers.slice(first), ...brokers.slice(0, first)] }
    // Each broker that was not asked yet has its share of the time.
    const leftMs = (untilMs - clock.monotonicMs()) / Math.max(1, brokers.length - tries + 1)
    try {
      return { admin: await openAdmin(client, options, clock, Math.max(1, leftMs)), options }
    } catch (error) {
      if (isRefused(error)) throw error
      if (tries === triesMax || clock.monotonicMs() + AGAIN_MS >= untilMs) {
        const text = `no Kafka broker can be used at ${brokers.join(', ')}: ${messageOf(error)}`
        throw new EngineError('ERR_STORAGE_OPEN', text, { cause: error })
      }
      await clock.sleep(AGAIN_MS)
    }
  }
}

async function openAdmin(client: Client, options: KafkaOptions, clock: Clock, withinMs: number): Promise<Admin> {
  const admin = explaining(new client.Admin({ ...clientOptions(options), retries: 0 }))
  guarded(admin.connections)
  try {
    await within(clock, withinMs, admin.metadata({ topics: [] }))
    return admin
  } catch (error) {
    await admin.close().catch(() => {})
    throw error
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
