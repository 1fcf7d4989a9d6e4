import { EngineError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { configsOf, numberOf } from './configs.ts'
import { type Admin, type Client, isKafkaError } from './driver.ts'
import { committedOf } from './offsets.ts'
import { archiveTopicOf, type KafkaOptions, statesTopicOf } from './options.ts'
import { DLQ_SUFFIX, type NewRecord } from './record.ts'

/** How long a dead letter must stay readable in its topic: the doctor checks the retention against it. */
export const LETTER_AGE_MAX_MS = 30 * 86_400_000

/** Topics of dead letters keep everything: the broker would delete letters that are not archived yet. */
export const DLQ_TOPIC_CONFIG: Readonly<Record<string, string>> = Object.freeze({
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
})

/** What a letter adds to the value of its record: the envelope, and the error again in the headers. */
const AROUND_BYTES = 64 * 1_024
/** The largest `max.message.bytes`. */
const TOPIC_BYTES_MAX = 2 ** 31 - 1

/** How large the letter of a record of this size may be: a value that is not JSON becomes base64, a third larger. */
export function letterBytesMax(recordBytes: number): number {
  return Math.min(TOPIC_BYTES_MAX, Math.ceil((recordBytes * 4) / 3) + AROUND_BYTES)
}

/** One partition that keeps the last record of each key. An audit entry may hold two payloads. */
const STATES_TOPIC_CONFIG: Readonly<Record<string, string>> = Object.freeze({
  'cleanup.policy': 'compact',
  'retention.ms': '-1',
  'max.message.bytes': String(10 * 1_024 * 1_024),
})

/** Lines of the archive are a little longer than their letters. */
const ARCHIVE_TOPIC_CONFIG: Readonly<Record<string, string>> = Object.freeze({
  ...DLQ_TOPIC_CONFIG,
  'max.message.bytes': String(10 * 1_024 * 1_024),
})

/** Settings of topics that are not for jobs. They have one partition: their records are read in one order. */
const CONFIGS = Object.freeze({
  'dead-letters': DLQ_TOPIC_CONFIG,
  states: STATES_TOPIC_CONFIG,
  archive: ARCHIVE_TOPIC_CONFIG,
})
export type TopicKind = 'jobs' | keyof typeof CONFIGS

/** How long a topic that a worker reads may be missing before it is created again. */
const CREATE_AGAIN_MS = 5_000

/** The topics that exist. Missing ones are created, unless `partitions` is 0. */
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

  /** Returns those that no longer exist; the next `ensure` creates them. */
  async forgetMissing(topics: readonly string[]): Promise<readonly string[]> {
    const existing = new Set(await this.#admin.listTopics())
    const missing = topics.filter((topic) => !existing.has(topic))
    for (const topic of missing) this.#known.delete(topic)
    return missing
  }

  /**
   * All existing topics. A topic of `read` that was deleted is created again after a few seconds, so that an operator can
   * first create it with other settings. `onError` is told.
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

  /** A letter is larger than its record. Without the right to read settings, the broker's default stays. */
  async #roomFor(jobs: string): Promise<Readonly<Record<string, string>>> {
    const { TOPIC } = this.#client.ConfigResourceTypes
    const found = await configsOf(this.#admin, TOPIC, [jobs], ['max.message.bytes']).catch(() => null)
    const bytes = numberOf(found?.get(jobs) ?? new Map(), 'max.message.bytes')
    return bytes === null ? {} : { 'max.message.bytes': String(letterBytesMax(bytes)) }
  }
}

/**
 * The topics of jobs that are there and concern the group. With a prefix all topics that have it are ours; without one,
 * those that the group has committed or that are known.
 */
export function jobTopicsOf(
  existing: ReadonlySet<string>,
  {
    prefix,
    desk,
    known,
    committed,
  }: Pick<KafkaOptions, 'prefix' | 'desk'> & {
    readonly known: Iterable<string>
    readonly committed: Iterable<{ readonly topic: string }>
  },
): readonly string[] {
  const prefixed = prefix === '' ? [] : [...existing].filter((topic) => topic.startsWith(prefix))
  const used = new Set([...known, ...prefixed, ...[...committed].map(({ topic }) => topic)])
  const ours = [statesTopicOf({ desk }), archiveTopicOf({ desk })]
  const isForJobs = (topic: string): boolean => !topic.endsWith(DLQ_SUFFIX) && !ours.includes(topic)
  return [...used].filter((topic) => existing.has(topic) && topic.startsWith(prefix) && isForJobs(topic))
}

/** What the group has committed, and the topics of jobs that concern it, as they are now. */
export async function findJobTopics(
  admin: Admin,
  options: Pick<KafkaOptions, 'group' | 'prefix' | 'desk'>,
  known: Iterable<string>,
) {
  const [committed, existing] = await Promise.all([committedOf(admin, options.group), admin.listTopics()])
  return { committed, jobs: jobTopicsOf(new Set(existing), { ...options, known, committed: committed.values() }) }
}

/**
 * Writes to topics that may be missing: they are created first, and again when they were deleted since this process last
 * saw them. `send` writes the records, and is repeated only where none of them can have been written.
 */
export async function writeToTopics(
  topics: Topics,
  records: readonly NewRecord[],
  kind: TopicKind,
  send: () => Promise<unknown>,
): Promise<void> {
  const names = [...new Set(records.map(({ topic }) => topic))]
  if (names.length === 0) return
  await topics.ensure(names, kind)
  try {
    await send()
  } catch (error) {
    const gone = await topics.forgetMissing(names).catch(() => [])
    // Of several topics others may have been written to: who calls again does not know that, and must.
    if (gone.length < names.length) throw error
    await topics.ensure(names, kind)
    await send()
  }
}
