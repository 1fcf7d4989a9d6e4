import type { ConnectionPool, RecordsBatch } from '@platformatic/kafka'
import type { Clock } from '../../time/clock.ts'
import { endOf, recordsIn, toLogRecord } from './batch.ts'
import { type Client, clientOptions, type RawConsumer } from './driver.ts'
import type { Holding } from './holding.ts'
import type { KafkaOptions } from './options.ts'

type FetchResponse = Awaited<ReturnType<RawConsumer['fetch']>>

export interface ReaderParts {
  readonly client: Client
  readonly options: KafkaOptions
  readonly clock: Clock
  /** All partitions that are ours. Those that are not hungry are left out of the fetch. */
  holdings(): Iterable<Holding>
  /** Records were added to partitions. */
  onRecords(): void
  /** What it had read to is not in the log any more, or not yet. */
  onOutOfRange(holding: Holding): void
  onError(error: unknown): void
}

/** How long the broker may keep a fetch open; also how long a partition that has become hungry may have to wait. */
const WAIT_MS = 500
const FETCH_BYTES_MAX = 16 * 1_024 * 1_024
const PARTITION_BYTES_MAX = 1_024 * 1_024
const ERROR_MS = 200
const OFFSET_OUT_OF_RANGE = 1

interface Target {
  readonly holding: Holding
  readonly topicId: string
  readonly fetchOffset: bigint
}

/** Fetches what is hungry, from each broker with one request at a time. It never joins a group and commits nothing. */
export class Reader {
  readonly #parts: ReaderParts
  readonly #raw: RawConsumer
  readonly #pool: ConnectionPool
  readonly #busy = new Set<number>()
  readonly #fetches = new Set<Promise<void>>()
  #isStale = false
  #isLooking = false
  #isWanted = false
  #isClosed = false
  #cancelPause: (() => void) | null = null

  constructor(parts: ReaderParts) {
    this.#parts = parts
    const { client, options } = parts
    const base = clientOptions(options)
    // The broker answers after WAIT_MS at the latest.
    const requestTimeout = options.answerMs + WAIT_MS
    this.#raw = new client.Consumer<Buffer, Buffer, Buffer, Buffer>({
      ...base,
      requestTimeout,
      groupId: options.group,
      retries: 0,
    })
    this.#pool = new client.ConnectionPool(base.clientId, { connectTimeout: base.connectTimeout, requestTimeout })
  }

  /** Starts to fetch from every broker that nothing is asked of yet. Cheap: call it whenever something may be hungry. */
  pump(): void {
    if (this.#isClosed || this.#cancelPause !== null) return
    // Called at every settlement: one look at a time is enough, and one more after it.
    if (this.#isLooking) {
      this.#isWanted = true
      return
    }
    this.#isLooking = true
    const fetching = this.#pumpNow().catch((error: unknown) => this.#pause(error))
    this.#fetches.add(fetching)
    void fetching.finally(() => {
      this.#fetches.delete(fetching)
      this.#isLooking = false
      if (!this.#isWanted) return
      this.#isWanted = false
      this.pump()
    })
  }

  async #pumpNow(): Promise<void> {
    const hungry = [...this.#parts.holdings()].filter(({ isHungry }) => isHungry)
    if (hungry.length === 0) return
    this.#isWanted = false
    const topics = [...new Set(hungry.map(({ topic }) => topic))]
    const metadata = await this.#raw.metadata({ topics, forceUpdate: this.#isStale })
    this.#isStale = false
    const byNode = new Map<number, Target[]>()
    for (const holding of hungry) {
      const topic = metadata.topics.get(holding.topic)
      const leader = topic?.partitions[holding.partition]?.leader
      if (topic === undefined || leader === undefined || this.#busy.has(leader)) continue
      const target = { holding, topicId: topic.id, fetchOffset: holding.watermark.readTo }
      byNode.set(leader, [...(byNode.get(leader) ?? []), target])
    }
    for (const [node, targets] of byNode) void this.#fetch(node, targets)
  }

  async #fetch(node: number, targets: readonly Target[]): Promise<void> {
    this.#busy.add(node)
    try {
      const topics = Map.groupBy(targets, ({ topicId }) => topicId)
      const response = await this.#raw.fetch({
        node,
        connectionPool: this.#pool,
        minBytes: 1,
        maxWaitTime: WAIT_MS,
        maxBytes: FETCH_BYTES_MAX,
        isolationLevel: 0,
        topics: [...topics].map(([topicId, wanted]) => ({
          topicId,
          partitions: wanted.map(({ holding, fetchOffset }) => ({
            partition: holding.partition,
            fetchOffset,
            currentLeaderEpoch: -1,
            lastFetchedEpoch: -1,
            partitionMaxBytes: PARTITION_BYTES_MAX,
          })),
        })),
      })
      this.#receive(response, targets)
    } catch (error) {
      // One bad partition makes the whole call fail; what the others brought stands in the error.
      const response: unknown = error instanceof Error ? Reflect.get(error, 'response') : undefined
      if (isResponse(response)) this.#receive(response, targets)
      this.#isStale = true
      this.#pause(error)
    } finally {
      this.#busy.delete(node)
      this.pump()
    }
  }

  #receive(response: FetchResponse, targets: readonly Target[]): void {
    const byName = new Map(targets.map((target) => [`${target.topicId}/${target.holding.partition}`, target]))
    let isAny = false
    for (const { topicId, partitions } of response.responses) {
      for (const { partitionIndex, errorCode, records } of partitions) {
        const target = byName.get(`${topicId}/${partitionIndex}`)
        if (target === undefined || target.holding.isLost) continue
        if (errorCode === OFFSET_OUT_OF_RANGE) this.#parts.onOutOfRange(target.holding)
        if (errorCode !== 0 || !records) continue
        for (const batch of records) isAny = addBatch(target, batch) || isAny
      }
    }
    if (isAny) this.#parts.onRecords()
  }

  #pause(error: unknown): void {
    if (this.#isClosed) return
    this.#parts.onError(error)
    this.#cancelPause ??= this.#parts.clock.after(ERROR_MS, () => {
      this.#cancelPause = null
      this.pump()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelPause?.()
    await Promise.allSettled([this.#pool.close(), ...this.#fetches])
    await this.#raw.close(true)
  }
}

/** False when it brought nothing: the marks of transactions are no records. */
function addBatch({ holding, fetchOffset }: Target, batch: RecordsBatch): boolean {
  let isAny = false
  for (const record of recordsIn(batch)) {
    const offset = batch.firstOffset + BigInt(record.offsetDelta)
    // A batch comes whole, also with what stands before the place that was asked for.
    if (offset < fetchOffset || offset < holding.watermark.readTo) continue
    isAny = true
    holding.add(toLogRecord(holding, batch, record))
  }
  holding.watermark.readUpTo(endOf(batch))
  return isAny
}

function isResponse(value: unknown): value is FetchResponse {
  return typeof value === 'object' && value !== null && Array.isArray(Reflect.get(value, 'responses'))
}
