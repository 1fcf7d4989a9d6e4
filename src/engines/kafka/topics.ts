import { EngineError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { DLQ_SUFFIX } from './dead-letters/record.ts'
import {
  ARCHIVE_TOPIC_CONFIG,
  DLQ_TOPIC_CONFIG,
  letterBytesMax,
  STATES_TOPIC_CONFIG,
} from './dead-letters/retention.ts'
import { configsOf, numberOf } from './diagnosis/settings.ts'
import { type Admin, type Client, isKafkaError } from './driver.ts'

/** Settings of topics that are not for jobs. They have one partition: their records are read in one order. */
const CONFIGS = Object.freeze({
  'dead-letters': DLQ_TOPIC_CONFIG,
  states: STATES_TOPIC_CONFIG,
  archive: ARCHIVE_TOPIC_CONFIG,
})
export type TopicKind = 'jobs' | keyof typeof CONFIGS

/** How long a topic that a worker reads may be missing before it is created again. */
const CREATE_AGAIN_MS = 5_000

/** Which topics are there. What is missing is created, unless that is the operator's own business. */
export class Topics {
  readonly #admin: Admin
  readonly #client: Client
  readonly #partitions: number
  readonly #clock: Clock
  /** Since when a topic that a worker reads has been missing, by the monotonic clock. */
  readonly #missingSinceMs = new Map<string, number>()
  readonly #known = new Set<string>()
  readonly #creating = new Map<string, Promise<void>>()

  /** `partitions`: of topics that are created; 0 creates none. */
  constructor(client: Client, admin: Admin, { partitions, clock }: { partitions: number; clock: Clock }) {
    this.#client = client
    this.#admin = admin
    this.#partitions = partitions
    this.#clock = clock
  }

  /** Topics that this process has used. */
  get known(): Iterable<string> {
    return this.#known
  }

  async ensure(topics: Iterable<string>, kind: TopicKind = 'jobs'): Promise<void> {
    const wanted = [...new Set(topics)].filter((topic) => !this.#known.has(topic))
    await Promise.all(wanted.map((topic) => this.#ensureOne(topic, kind)))
  }

  /** Those of them that are not there any more. They are created when they are next ensured. */
  async forgetMissing(topics: readonly string[]): Promise<readonly string[]> {
    const existing = new Set(await this.#admin.listTopics())
    const missing = topics.filter((topic) => !existing.has(topic))
    for (const topic of missing) this.#known.delete(topic)
    return missing
  }

  /**
   * All topics that there are. One of `read` that somebody has deleted is created again, not at once: whoever wants it
   * otherwise than we would make it has a few seconds to do so. `onError` hears of it.
   */
  async listReading(read: readonly string[], onError: (error: EngineError) => void): Promise<readonly string[]> {
    const existing = await this.#admin.listTopics()
    const missing = read.filter((topic) => !existing.includes(topic))
    for (const topic of this.#missingSinceMs.keys()) if (!missing.includes(topic)) this.#missingSinceMs.delete(topic)
    if (this.#partitions === 0) return existing
    const nowMs = this.#clock.monotonicMs()
    for (const topic of missing) {
      const sinceMs = this.#missingSinceMs.get(topic) ?? nowMs
      this.#missingSinceMs.set(topic, sinceMs)
      if (nowMs - sinceMs < CREATE_AGAIN_MS) continue
      this.#known.delete(topic)
      await this.ensure([topic])
      const text = `'${topic}' was deleted and is created again; the records that it had are gone`
      onError(new EngineError('ERR_SCHEMA_MISSING', text))
    }
    return existing
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
          ...(kind !== 'jobs' && { configs: await this.#configsOf(topic, kind) }),
        })
      } catch (error) {
        if (!isKafkaError(this.#client, error, 'TOPIC_ALREADY_EXISTS')) throw error
      }
    }
    this.#known.add(topic)
  }

  async #configsOf(topic: string, kind: Exclude<TopicKind, 'jobs'>): Promise<{ name: string; value: string }[]> {
    const room = kind === 'dead-letters' ? await this.#roomFor(topic.slice(0, -DLQ_SUFFIX.length)) : {}
    return Object.entries({ ...CONFIGS[kind], ...room }).map(([name, value]) => ({ name, value }))
  }

  /** A letter holds its record and more. Who may not be told the settings leaves the broker's own. */
  async #roomFor(jobs: string): Promise<Readonly<Record<string, string>>> {
    const { TOPIC } = this.#client.ConfigResourceTypes
    const found = await configsOf(this.#admin, TOPIC, [jobs], ['max.message.bytes']).catch(() => null)
    const bytes = numberOf(found?.get(jobs) ?? new Map(), 'max.message.bytes')
    return bytes === null ? {} : { 'max.message.bytes': String(letterBytesMax(bytes)) }
  }
}
