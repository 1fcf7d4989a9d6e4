import type { TopicLag } from '../../../engine/topics.ts'
import { type Clock, systemClock } from '../../../time/clock.ts'
import { type Connection, connect, disconnect } from '../connection.ts'
import { lagsOf } from '../counts.ts'
import { archiveTopicOf, type KafkaOptions, parseUrl } from '../options.ts'
import { DLQ_SUFFIX } from '../record.ts'
import { writeToTopics } from '../topics.ts'
import { DlqEndpoints } from './endpoints.ts'
import { LetterIndex } from './letter-index.ts'
import { archiveLetters } from './retention.ts'
import { isOpen } from './states.ts'
import { TopicDesk } from './topic-desk.ts'

export interface OpenTopicDeskOptions {
  /** How often a letter may be replayed before it takes force: 3 unless told. */
  readonly replaysMax?: number
  /** Told of every letter that was replayed, for `worker.dlq.replayed`. */
  readonly onReplayed?: (dlqTopic: string) => void
  /** Whose lag is watched: the group of the URL unless told. */
  readonly groups?: readonly string[]
  readonly clock?: Clock
}

/** Lines that go into one request. */
const LINES_BYTES_MAX = 512 * 1_024

/**
 * Opens the dead letters of a Kafka cluster for an operator: those of all topics and all groups. It joins no group.
 *
 * @example
 * const dlq = await openTopicDesk('kafka://127.0.0.1:9092')
 * const { letters } = await dlq.list({ topic: 'escrow.commands' })
 * await dlq.replayAll({ topic: 'escrow.commands', rate: 50 }, { who: 'ann', reason: 'the bank is back' })
 * await dlq.close()
 */
export async function openTopicDesk(url: string, options: OpenTopicDeskOptions = {}): Promise<OpenTopicDesk> {
  return OpenTopicDesk.open(url, options)
}

/** The dead-letter endpoints on a broker. */
export class OpenTopicDesk extends DlqEndpoints {
  /** The desk beneath, whose answers are values where the functions here throw. */
  readonly desk: TopicDesk
  readonly #connection: Connection
  readonly #options: KafkaOptions
  readonly #clock: Clock
  readonly #groups: readonly string[]
  readonly #index: LetterIndex
  #closed: Promise<void> | null = null

  /** Use `openTopicDesk`. */
  static async open(url: string, options: OpenTopicDeskOptions): Promise<OpenTopicDesk> {
    const { clock = systemClock } = options
    const parsed = parseUrl(url)
    return new OpenTopicDesk(await connect(parsed, clock), parsed, { ...options, clock })
  }

  /** Private, so that the types of this module need none of the client's, which not everybody has installed. */
  private constructor(
    connection: Connection,
    options: KafkaOptions,
    given: OpenTopicDeskOptions & { readonly clock: Clock },
  ) {
    const desk = new TopicDesk(connection.log, { ...given, prefix: options.prefix })
    super(desk, connection.log)
    this.desk = desk
    this.#connection = connection
    this.#options = options
    this.#clock = given.clock
    this.#groups = given.groups ?? [options.group]
    this.#index = new LetterIndex(connection.log, null)
  }

  /** How far the groups are behind, by topic: what a watch and the dashboard show. */
  lags(): Promise<readonly TopicLag[]> {
    return lagsOf(this.#connection.admin, this.#groups)
  }

  /**
   * Letters that nobody has decided about, by DLQ topic, for `worker.dlq.pending`. The first call reads all letters, later
   * ones only what is new.
   */
  async pendingByTopic(): Promise<readonly { readonly topic: string; readonly count: number }[]> {
    const { admin, log } = this.#connection
    const { prefix } = this.#options
    const isLetters = (topic: string): boolean => topic.startsWith(prefix) && topic.endsWith(DLQ_SUFFIX)
    const found = await this.#index.of((await admin.listTopics()).filter(isLetters))
    const book = await log.states()
    return [...found].map(([topic, letters]) => ({
      topic,
      count: letters.filter(({ letter }) => isOpen(book.of(letter))).length,
    }))
  }

  /**
   * What the HTTP API takes as `topics`. `limits`: from how many records behind a topic is worth a warning or more.
   *
   * @example
   * const admin = createAdmin(mill, { topics: dlq.watched(escrowLagLimits) })
   */
  watched(limits: (topic: string) => { readonly warning: number; readonly critical: number } | null = () => null) {
    return { desk: this.desk, lags: () => this.lags(), pending: () => this.pendingByTopic(), limits }
  }

  /**
   * Moves letters that have been kept long enough into the archive: ordinary ones after 30 days, financial ones 30 days
   * after an operator has replayed or discarded them. The archive is a topic of ours that forgets nothing, unless `write`
   * stores the lines elsewhere.
   */
  async archive(
    { topic, isFinancial }: { readonly topic: string; readonly isFinancial: boolean },
    write: (lines: readonly string[]) => Promise<void> = (lines) => this.#writeArchive(lines),
  ): Promise<{ readonly archived: number }> {
    const options = { isFinancial, archive: write, clock: this.#clock }
    return { archived: await archiveLetters(this.#connection.log, topic, options) }
  }

  async #writeArchive(lines: readonly string[]): Promise<void> {
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
