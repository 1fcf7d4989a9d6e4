import type { DeadLetters } from '../../engine/dead-letters.ts'
import type { TopicLag, TopicsOfBroker } from '../../engine/open.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type Connection, connect, disconnect } from './connection.ts'
import { lagsOf } from './counts.ts'
import { GroupLetters } from './dead-letters/letter-index.ts'
import { TopicLetters } from './dead-letters/topic-letters.ts'
import { KafkaDeadLetters } from './dead-letters.ts'
import { archiveTopicOf, type KafkaOptions, parseUrl } from './options.ts'
import { DLQ_SUFFIX, dlqTopicOf } from './record.ts'
import { writeToTopics } from './topics.ts'

export interface OpenTopicsOptions {
  /** Whose lag is shown. Default: the group of the URL. */
  readonly groups?: readonly string[]
  readonly clock?: Clock
}

/** Lines that go into one request. */
const LINES_BYTES_MAX = 512 * 1_024

/** The topics of a broker for its operators: lag, and the dead letters of all topics and groups. It joins no group. */
export class BrokerTopics implements TopicsOfBroker {
  readonly letters: TopicLetters
  readonly deadLetters: DeadLetters
  readonly #connection: Connection
  readonly #options: KafkaOptions
  readonly #clock: Clock
  readonly #groups: readonly string[]
  readonly #all: GroupLetters
  #closed: Promise<void> | null = null

  static async open(url: string, { clock = systemClock, groups }: OpenTopicsOptions = {}): Promise<BrokerTopics> {
    const options = parseUrl(url)
    const connection = await connect(options, clock)
    return new BrokerTopics(connection, options, { clock, groups: groups ?? [options.group] })
  }

  /** Private, so that the types of this module need none of the client's, which may not be installed. */
  private constructor(connection: Connection, options: KafkaOptions, given: Required<OpenTopicsOptions>) {
    const { log } = connection
    const { clock } = given
    const { prefix } = options
    this.letters = new TopicLetters(log, { clock, prefix })
    this.#all = new GroupLetters({ log, group: null, prefix, topics: () => this.#topicsWithLetters() })
    this.deadLetters = new KafkaDeadLetters({ log, clock, group: null, prefix, locator: this.#all })
    this.#connection = connection
    this.#options = options
    this.#clock = given.clock
    this.#groups = given.groups
  }

  lags(): Promise<readonly TopicLag[]> {
    return lagsOf(this.#connection.admin, this.#groups, this.#clock.nowMs())
  }

  dlqTopicOf(type: string): string {
    return dlqTopicOf(this.#options.prefix + type)
  }

  /** The first call reads all letters, later ones only what is new. */
  async pendingByTopic(): Promise<readonly { readonly topic: string; readonly count: number }[]> {
    const tallies = await this.#all.tally(await this.#topicsWithLetters())
    return [...tallies].map(([topic, { dead }]) => ({ topic: dlqTopicOf(topic), count: dead }))
  }

  async #topicsWithLetters(): Promise<readonly string[]> {
    const topics = await this.#connection.admin.listTopics()
    const dlqTopics = topics.filter((topic) => topic.startsWith(this.#options.prefix) && topic.endsWith(DLQ_SUFFIX))
    return dlqTopics.map((topic) => topic.slice(0, -DLQ_SUFFIX.length))
  }

  /** Stores lines in the archive topic, which keeps them forever. */
  async archive(lines: readonly string[]): Promise<void> {
    const { topics, producer } = this.#connection
    const topic = archiveTopicOf(this.#options)
    let some: Buffer[] = []
    let bytes = 0
    const flush = async (): Promise<void> => {
      const records = some.map((value) => ({ topic, partition: 0, key: null, value, headers: new Map() }))
      await writeToTopics(topics, records, 'archive', () => producer.send(records))
      some = []
      bytes = 0
    }
    for (const line of lines) {
      const value = Buffer.from(line)
      if (bytes + value.length > LINES_BYTES_MAX) await flush()
      some.push(value)
      bytes += value.length
    }
    await flush()
  }

  close(): Promise<void> {
    this.#closed ??= disconnect(this.#connection, this.#options, this.#clock)
    return this.#closed
  }
}
