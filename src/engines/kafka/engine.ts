import type { Capabilities } from '../../engine/capabilities.ts'
import { admitTransaction } from '../../engine/capability-checks.ts'
import type { DeadLetters } from '../../engine/dead-letters.ts'
import type {
  Consumer,
  Counts,
  DiagnoseOptions,
  Engine,
  Finding,
  KnownWorker,
  Lookup,
  Receipt,
  Subscription,
  Transaction,
} from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { ClosedError, UnsupportedError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { throwIfMetadataTooSmall } from './commits.ts'
import { type Connection, connect, disconnect } from './connection.ts'
import { KafkaConsumer } from './consumer.ts'
import { countJobs } from './counts.ts'
import { GroupLetters } from './dead-letters/letter-index.ts'
import { LetterWriter } from './dead-letters/letter-writer.ts'
import { KafkaDeadLetters } from './dead-letters.ts'
import { within } from './faults.ts'
import { isTopic, toRecord } from './job-record.ts'
import { KafkaLookup } from './lookup.ts'
import { workersOf } from './members.ts'
import type { KafkaOptions } from './options.ts'
import { dlqTopicOf } from './record.ts'
import { findJobTopics, writeToTopics } from './topics.ts'

const RETRY_DELAY_MS_MAX = 30 * 60_000

export function capabilitiesOf({ sessionMs, drainMs }: KafkaOptions): Capabilities {
  return Object.freeze({
    // As many nodes as the topics have replicas beyond those that must be in sync.
    scope: 'type',
    survives: 'process-crash',
    settle: 'watermark',
    recovery: 'engine',
    // A dead process's partitions move after its session, and other members may drain first.
    recoveryMaxMs: sessionMs + drainMs,
    enqueueDelayMaxMs: 0,
    retryDelayMaxMs: RETRY_DELAY_MS_MAX,
    order: 'per-key',
    keys: 'partition',
    latest: false,
    idempotentEnqueue: false,
    enqueueAtomic: false,
    transactionalEnqueue: false,
    limits: 'refused',
    slots: 'refused',
    dependencies: false,
  })
}

interface Connected extends Connection {
  readonly deadLetters: KafkaDeadLetters
  readonly letters: GroupLetters
  readonly writer: LetterWriter
  readonly lookup: KafkaLookup
}

/** Topics as queues, the consumer group as the lease, the key as the order. */
export class KafkaEngine implements Engine {
  readonly name = 'kafka'
  readonly capabilities: Capabilities
  readonly threadUrl = null
  readonly #options: KafkaOptions
  readonly #settings: EngineSettings
  readonly #closing = new AbortController()
  readonly #consumers = new Set<KafkaConsumer>()
  readonly #connected: Connected
  #closed: Promise<void> | null = null

  static async connect(options: KafkaOptions, settings: EngineSettings): Promise<KafkaEngine> {
    const connection = await connect(options, settings.clock)
    return new KafkaEngine(connection, connection.options, settings)
  }

  private constructor(connection: Connection, options: KafkaOptions, settings: EngineSettings) {
    this.#options = options
    this.#settings = settings
    this.capabilities = capabilitiesOf(options)
    const { log, topics: used } = connection
    const topics = async (): Promise<readonly string[]> =>
      (await findJobTopics(this.#open().admin, options, used.known)).jobs
    const { group, prefix } = options
    const { clock } = settings
    const letters = new GroupLetters({ log, group, prefix, topics })
    const deadLetters = new KafkaDeadLetters({ log, clock, group, prefix, locator: letters })
    const { client, admin } = connection
    const lookup = new KafkaLookup({
      ...{ client, admin, clock, options, letters, topics: () => used.known },
      flush: () => this.#flush(),
    })
    this.#connected = { ...connection, letters, deadLetters, lookup, writer: new LetterWriter(connection) }
  }

  get deadLetters(): DeadLetters {
    return this.#open().deadLetters
  }

  get lookup(): Lookup {
    return this.#open().lookup
  }

  async ping(): Promise<void> {
    await this.#bounded(this.#open().admin.metadata({ topics: [], forceUpdate: true }))
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    const { producer, topics } = this.#open()
    if (within !== undefined) admitTransaction(this)
    for (const { type } of jobs) this.#admitType(type)
    const records = jobs.map((job) => toRecord(job, this.#options.prefix))
    if (records.length === 0) return []
    await writeToTopics(topics, records, 'jobs', () => producer.send(records))
    return jobs.map(({ id }) => ({ id, status: 'enqueued' }))
  }

  /** Creates topics of these types that are missing, and those of their dead letters. Needs no more than to be open. */
  async ensureTopics(types: readonly string[]): Promise<void> {
    const { topics } = this.#open()
    for (const type of types) this.#admitType(type)
    const names = types.map((type) => this.#options.prefix + type)
    await topics.ensure(names)
    await topics.ensure(names.map(dlqTopicOf), 'dead-letters')
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const { client, admin, topics } = this.#open()
    const types = subscription.types === 'every' ? [] : subscription.types.map(({ type }) => type)
    for (const type of types) this.#admitType(type)
    const { clock } = this.#settings
    const { signal } = subscription
    const names = types.map((type) => this.#options.prefix + type)
    await Promise.all([topics.ensure(names), types.length > 0 && throwIfMetadataTooSmall(admin, client, clock)])
    // Closed meanwhile: a member that joined now would never leave.
    this.#throwIfClosed()
    const consumer = new KafkaConsumer({
      ...{ client, admin, subscription, options: this.#options, clock },
      existing: (onError) => topics.listReading(names, onError),
      engineClosed: this.#closing.signal,
      writeLetters: (letters) => this.#open().writer.write(letters),
      onClosed: (closed) => void this.#consumers.delete(closed),
    })
    this.#consumers.add(consumer)
    const giveUp = (): void => void consumer.leave()
    signal?.addEventListener('abort', giveUp, { once: true })
    if (signal?.aborted === true) giveUp()
    await consumer.open().finally(() => signal?.removeEventListener('abort', giveUp))
    if (signal?.aborted === true) throw new ClosedError('the consumer')
    return consumer
  }

  async counts(): Promise<Counts> {
    const { admin, topics, letters } = this.#open()
    await this.#flush()
    const nowMs = this.#settings.clock.nowMs()
    return countJobs(admin, { ...this.#options, topics: topics.known, nowMs, tally: (jobs) => letters.tally(jobs) })
  }

  /** What this process has settled is told to the broker, so that the next look sees it. */
  async #flush(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.flush()))
  }

  /** The members of the group that read topics with our prefix. */
  async workers(): Promise<readonly KnownWorker[]> {
    const { admin, topics } = this.#open()
    return this.#bounded(workersOf(admin, { ...this.#options, topics: topics.known }))
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { client, admin, topics } = this.#open()
    const nowMs = this.#settings.clock.nowMs()
    const { diagnose } = await import('./doctor-facts.ts')
    return diagnose({ ...options, client, admin, options: this.#options, topics: topics.known, nowMs })
  }

  close(): Promise<void> {
    this.#closing.abort()
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#consumers].map((consumer) => consumer.leave()))
    await this.#connected.lookup.close()
    await disconnect(this.#connected, this.#options, this.#settings.clock)
  }

  #bounded<Value>(work: Promise<Value>): Promise<Value> {
    return within(this.#settings.clock, this.#options.answerMs, work)
  }

  #admitType(type: string): void {
    if (isTopic(this.#options.prefix + type)) return
    throw new UnsupportedError({
      job: type,
      engine: this.name,
      limit: `names a topic by the type, which may only have letters, digits and ._-`,
    })
  }

  #throwIfClosed(): void {
    if (this.#closing.signal.aborted) throw new ClosedError('the kafka engine')
  }

  #open(): Connected {
    this.#throwIfClosed()
    return this.#connected
  }
}
