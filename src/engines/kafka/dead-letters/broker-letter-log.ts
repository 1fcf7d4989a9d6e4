import { EngineError } from '../../../errors.ts'
import type { Clock } from '../../../time/clock.ts'
import { explained } from '../client-faults.ts'
import type { Admin, Client } from '../driver.ts'
import { within } from '../faults.ts'
import { offsetsOf } from '../offsets.ts'
import { type KafkaOptions, statesTopicOf } from '../options.ts'
import type { RecordProducer } from '../producer.ts'
import { RangeReader } from '../range-reader.ts'
import { type NewRecord, nameOf, type PartitionName } from '../record.ts'
import { type Topics, writeToTopics } from '../topics.ts'
import { type AuditedAct, type DlqAudit, decodeAudit, encodeAudit } from './audit.ts'
import type { LetterLog, PartitionRange } from './letter-log.ts'
import { readWhole } from './parts.ts'
import { decodeState, encodeState, StateBook, type StateRecord } from './states.ts'

export interface BrokerParts {
  readonly client: Client
  readonly admin: Admin
  readonly producer: RecordProducer
  readonly topics: Topics
  readonly options: KafkaOptions
  readonly clock: Clock
}

const PAGE_MAX = 1_000
const STEP_MS = 20
const TOPIC = 2
const NO_HEADERS: NewRecord['headers'] = new Map()
/**
 * A tombstone is kept for a day. Who has not looked for longer than this reads all of the states again, and so cannot
 * miss one.
 */
const FRESH_MS = 6 * 3_600_000

/** The dead letters of a broker: their topics, and the compacted topic of ours with their states and the audit. */
export class BrokerLetterLog implements LetterLog {
  readonly #parts: BrokerParts
  readonly #statesTopic: string
  #reader: RangeReader | null = null
  #book = new StateBook()
  #readTo = 0n
  #readAtMs = Number.NEGATIVE_INFINITY
  #turn: Promise<unknown> = Promise.resolve()
  /** A look that has not begun: all who ask meanwhile share it. */
  #next: Promise<StateBook> | null = null
  #checked: Promise<void> | null = null

  constructor(parts: BrokerParts) {
    this.#parts = parts
    this.#statesTopic = statesTopicOf(parts.options)
  }

  async partitions(topics: readonly string[]): Promise<ReadonlyMap<string, readonly PartitionRange[]>> {
    const { admin } = this.#parts
    const existing = new Set(await this.#bounded(admin.listTopics()))
    const wanted = [...new Set(topics)].filter((topic) => existing.has(topic))
    if (wanted.length === 0) return new Map()
    const { topics: found } = await this.#bounded(admin.metadata({ topics: wanted, forceUpdate: true }))
    const all = wanted.flatMap((topic) =>
      Array.from({ length: found.get(topic)?.partitionsCount ?? 0 }, (_, partition) => ({ topic, partition })),
    )
    const [begins, ends] = await this.#bounded(Promise.all([offsetsOf(admin, all, -2n), offsetsOf(admin, all, -1n)]))
    const rangeOf = (place: PartitionName): PartitionRange => ({
      partition: place.partition,
      begin: begins.get(nameOf(place)) ?? 0n,
      end: ends.get(nameOf(place)) ?? 0n,
    })
    return new Map([...Map.groupBy(all, ({ topic }) => topic)].map(([topic, places]) => [topic, places.map(rangeOf)]))
  }

  async readRange(topic: string, partition: number, range: Parameters<LetterLog['readRange']>[2]) {
    return explained(readWhole((place, part) => this.#open().read(place, part), { topic, partition }, range))
  }

  async produce(records: readonly NewRecord[]): Promise<void> {
    await this.#parts.producer.send(records)
  }

  states(): Promise<StateBook> {
    this.#next ??= this.#turn.then(() => {
      this.#next = null
      return this.#readStates()
    })
    this.#turn = this.#next.catch(() => {})
    return this.#next
  }

  async #readStates(): Promise<StateBook> {
    const nowMs = this.#parts.clock.monotonicMs()
    const range = await this.#statesRange()
    const isStale = nowMs - this.#readAtMs > FRESH_MS
    // A topic that ends before the place that we had read to was removed and made anew.
    if (range === null || isStale || range.end < this.#readTo) {
      this.#book = new StateBook()
      this.#readTo = 0n
    }
    const { begin, end } = range ?? { begin: 0n, end: 0n }
    for (let from = this.#readTo > begin ? this.#readTo : begin; from < end; ) {
      const records = await this.readRange(this.#statesTopic, 0, { from, to: end, max: PAGE_MAX })
      for (const { key, value } of records) {
        const state = decodeState(key, value)
        if (state !== null) this.#book.apply(state)
      }
      from = (records.at(-1)?.offset ?? end - 1n) + 1n
      this.#readTo = from
    }
    this.#readAtMs = nowMs
    return this.#book
  }

  async #statesRange(): Promise<PartitionRange | null> {
    return (await this.partitions([this.#statesTopic])).get(this.#statesTopic)?.[0] ?? null
  }

  async write(states: readonly StateRecord[], audit: readonly DlqAudit[] = []): Promise<void> {
    const encoded = [...states.map(encodeState), ...audit.map(encodeAudit)]
    const place = { topic: this.#statesTopic, partition: 0, headers: NO_HEADERS }
    const records = encoded.map((record) => ({ ...place, ...record }))
    const { topics, producer } = this.#parts
    await writeToTopics(topics, records, 'states', async () => {
      await this.#checkStates()
      try {
        await producer.sendAlone(records)
      } catch (error) {
        // Who has deleted the topic may also have created it, otherwise.
        this.#checked = null
        throw error
      }
    })
  }

  #checkStates(): Promise<void> {
    this.#checked ??= this.#checkStatesNow().catch((error: unknown) => {
      this.#checked = null
      throw error
    })
    return this.#checked
  }

  /** Asked when something is to be written for the first time: who only looks needs no right to create topics. */
  async #checkStatesNow(): Promise<void> {
    const { admin, clock, options } = this.#parts
    const untilMs = clock.monotonicMs() + options.answerMs
    // The broker hears of a new topic a moment after its controller has answered.
    while ((await this.#statesRange()) === null && clock.monotonicMs() < untilMs) await clock.sleep(STEP_MS)
    const ranges = (await this.partitions([this.#statesTopic])).get(this.#statesTopic) ?? []
    const [described] = await admin.describeConfigs({
      resources: [{ resourceType: TOPIC, resourceName: this.#statesTopic, configurationKeys: ['cleanup.policy'] }],
    })
    const policy = described?.configs.find(({ name }) => name === 'cleanup.policy')?.value
    if (ranges.length === 1 && policy === 'compact') return
    throw new EngineError(
      'ERR_STORAGE_FAILED',
      `the topic '${this.#statesTopic}' has ${ranges.length} partitions and cleanup.policy=${policy}, so states of dead letters would get lost; give it one partition and cleanup.policy=compact, or name others with desk=`,
    )
  }

  async *audited(before?: number): AsyncGenerator<AuditedAct> {
    const range = await this.#statesRange()
    if (range === null) return
    const last = before === undefined || BigInt(before) > range.end ? range.end : BigInt(before)
    for (let to = last; to > range.begin; ) {
      const from = to - BigInt(PAGE_MAX) > range.begin ? to - BigInt(PAGE_MAX) : range.begin
      const acts = await this.#auditedIn(from, to)
      yield* acts.reverse()
      to = from
    }
  }

  async #auditedIn(begin: bigint, to: bigint): Promise<AuditedAct[]> {
    const acts: AuditedAct[] = []
    for (let from = begin; from < to; ) {
      const records = await this.readRange(this.#statesTopic, 0, { from, to, max: PAGE_MAX })
      for (const { key, value, offset } of records) {
        const act = decodeAudit(key, value)
        if (act !== null) acts.push({ ...act, seq: Number(offset) })
      }
      from = (records.at(-1)?.offset ?? to - 1n) + 1n
    }
    return acts
  }

  async deleteBefore(topic: string, partition: number, offset: bigint): Promise<void> {
    const { admin } = this.#parts
    await this.#bounded(admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition, offset }] }] }))
  }

  async close(): Promise<void> {
    await this.#reader?.close()
  }

  #open(): RangeReader {
    const { client, options, clock } = this.#parts
    this.#reader ??= new RangeReader(client, options, clock)
    return this.#reader
  }

  #bounded<Value>(work: Promise<Value>): Promise<Value> {
    return within(this.#parts.clock, this.#parts.options.answerMs, work)
  }
}
