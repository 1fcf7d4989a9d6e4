import { EngineError } from '../../errors.ts'
import { ARCHIVE_TOPIC_CONFIG, DLQ_TOPIC_CONFIG, STATES_TOPIC_CONFIG } from './dead-letters/retention.ts'
import { type Admin, type Client, isKafkaError } from './driver.ts'

/** Settings of topics that are not for jobs. They have one partition: their records are read in one order. */
const CONFIGS = Object.freeze({
  'dead-letters': DLQ_TOPIC_CONFIG,
  states: STATES_TOPIC_CONFIG,
  archive: ARCHIVE_TOPIC_CONFIG,
})
type TopicKind = 'jobs' | keyof typeof CONFIGS

/** Which topics are there. What is missing is created, unless that is the operator's own business. */
export class Topics {
  readonly #admin: Admin
  readonly #client: Client
  readonly #partitions: number
  readonly #known = new Set<string>()
  readonly #creating = new Map<string, Promise<void>>()

  /** `partitions`: of topics that are created; 0 creates none. */
  constructor(client: Client, admin: Admin, partitions: number) {
    this.#client = client
    this.#admin = admin
    this.#partitions = partitions
  }

  /** Topics that this process has used. */
  get known(): Iterable<string> {
    return this.#known
  }

  async ensure(topics: Iterable<string>, kind: TopicKind = 'jobs'): Promise<void> {
    const wanted = [...new Set(topics)].filter((topic) => !this.#known.has(topic))
    await Promise.all(wanted.map((topic) => this.#ensureOne(topic, kind)))
  }

  #ensureOne(topic: string, kind: TopicKind): Promise<void> {
    const creating = this.#creating.get(topic) ?? this.#create(topic, kind)
    this.#creating.set(topic, creating)
    return creating.finally(() => this.#creating.delete(topic))
  }

  async #create(topic: string, kind: TopicKind): Promise<void> {
    const existing = await this.#admin.listTopics()
    if (!existing.includes(topic)) {
      if (this.#partitions === 0)
        throw new EngineError(
          'ERR_SCHEMA_MISSING',
          `the topic '${topic}' does not exist; create it, or leave out partitions=0`,
        )
      try {
        await this.#admin.createTopics({
          topics: [topic],
          partitions: kind === 'jobs' ? this.#partitions : 1,
          replicas: -1,
          ...(kind !== 'jobs' && {
            configs: Object.entries(CONFIGS[kind]).map(([name, value]) => ({ name, value })),
          }),
        })
      } catch (error) {
        if (!isKafkaError(this.#client, error, 'TOPIC_ALREADY_EXISTS')) throw error
      }
    }
    this.#known.add(topic)
  }
}
