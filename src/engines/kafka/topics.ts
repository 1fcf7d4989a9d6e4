import { EngineError } from '../../errors.ts'
import { DLQ_TOPIC_CONFIG } from './dead-letters/retention.ts'
import { type Admin, type Client, isKafkaError } from './driver.ts'

const LETTERS_CONFIG = Object.entries(DLQ_TOPIC_CONFIG).map(([name, value]) => ({ name, value }))

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

  async ensure(topics: Iterable<string>, kind: 'jobs' | 'dead-letters' = 'jobs'): Promise<void> {
    const wanted = [...new Set(topics)].filter((topic) => !this.#known.has(topic))
    await Promise.all(wanted.map((topic) => this.#ensureOne(topic, kind)))
  }

  #ensureOne(topic: string, kind: 'jobs' | 'dead-letters'): Promise<void> {
    const creating = this.#creating.get(topic) ?? this.#create(topic, kind)
    this.#creating.set(topic, creating)
    return creating.finally(() => this.#creating.delete(topic))
  }

  async #create(topic: string, kind: 'jobs' | 'dead-letters'): Promise<void> {
    const existing = await this.#admin.listTopics()
    if (!existing.includes(topic)) {
      if (this.#partitions === 0)
        throw new EngineError(
          'ERR_SCHEMA_MISSING',
          `the topic '${topic}' does not exist; create it, or leave out partitions=0`,
        )
      const isLetters = kind === 'dead-letters'
      try {
        await this.#admin.createTopics({
          topics: [topic],
          // One partition keeps the letters in the order of their deaths.
          partitions: isLetters ? 1 : this.#partitions,
          replicas: -1,
          ...(isLetters && { configs: LETTERS_CONFIG }),
        })
      } catch (error) {
        if (!isKafkaError(this.#client, error, 'TOPIC_ALREADY_EXISTS')) throw error
      }
    }
    this.#known.add(topic)
  }
}
