import type { API, ConnectionPool } from '@platformatic/kafka'
import { EngineError } from '../../errors.ts'
import { explained } from './client-faults.ts'
import { type Client, clientOptions, createPool, guarded, type RawConsumer } from './driver.ts'
import type { Isolation, KafkaOptions } from './options.ts'
import type { PartitionName } from './record.ts'
import type { AbortedTransaction } from './record-cursor.ts'

/** From where to read a partition, and how much at most. */
export interface Wanted extends PartitionName {
  /** Asked for by this and not by its name, under which there may be another topic by now. */
  readonly topicId: string
  readonly from: number
  readonly bytesMax: number
}

/** What the broker has sent of a partition: batches of records as they lie in its log, the last perhaps cut. */
export interface Fetched<Asked extends Wanted = Wanted> {
  readonly wanted: Asked
  /** Of Kafka; 0 for none. */
  readonly errorCode: number
  readonly batches: Buffer | null
  /** Transactions with records among these that were aborted. None are told to who reads the uncommitted. */
  readonly aborted: readonly AbortedTransaction[]
}

export interface FetchBounds {
  /** How long the broker may keep the call open while there is nothing. */
  readonly waitMs: number
  readonly bytesMax: number
}

type Metadata = Awaited<ReturnType<RawConsumer['metadata']>>
type ResponseReader = Parameters<Client['fetchV17']['parseResponse']>[3]

interface Answer {
  readonly errorCode: number
  readonly partitions: readonly (Omit<Fetched, 'wanted'> & { readonly topicId: string; readonly partition: number })[]
}

/** The first one that names topics by their ids, and the last one that the client can write. */
const VERSION_MIN = 13
const VERSION_MAX = 17
/** No session: every call says all that it wants, and the broker remembers nothing. */
const [NO_SESSION, NO_EPOCH] = [0, -1]
/** With the second, the broker sends nothing from the first record of an open transaction on, and tells of aborts. */
const LEVELS = Object.freeze({ read_uncommitted: 0, read_committed: 1 }) satisfies Record<Isolation, number>
const NO_ABORTS: readonly AbortedTransaction[] = []
/** A call answers as soon as there is a byte. */
const BYTES_MIN = 1

/**
 * Calls of Kafka's Fetch that leave records as the bytes they are. The client would make a dozen objects of each before
 * it is needed, and most of the time no worker is free to take them.
 */
export class FetchClient {
  readonly #client: Client
  readonly #raw: RawConsumer
  readonly #pool: ConnectionPool
  readonly #isolation: Isolation

  /** `waitMs`: the longest that a call will want to be kept open. */
  constructor(client: Client, options: KafkaOptions, waitMs: number, isolation: Isolation) {
    this.#client = client
    this.#isolation = isolation
    const given = { ...clientOptions(options), requestTimeout: options.answerMs + waitMs }
    this.#raw = new client.Consumer<Buffer, Buffer, Buffer, Buffer>({ ...given, groupId: options.group, retries: 0 })
    guarded(this.#raw.connections)
    this.#pool = createPool(client, options, given.requestTimeout)
  }

  /** `isStale`: what was known before has turned out to be wrong. */
  metadata(topics: readonly string[], isStale: boolean): Promise<Metadata> {
    return explained(this.#raw.metadata({ topics: [...topics], forceUpdate: isStale }))
  }

  /** Of partitions that one broker leads. Each has its own error; this rejects where the call as a whole fails. */
  fetch<Asked extends Wanted>(
    metadata: Metadata,
    node: number,
    wanted: readonly Asked[],
    bounds: FetchBounds,
  ): Promise<readonly Fetched<Asked>[]> {
    return explained(this.#fetch(metadata, node, wanted, bounds))
  }

  async #fetch<Asked extends Wanted>(
    metadata: Metadata,
    node: number,
    wanted: readonly Asked[],
    bounds: FetchBounds,
  ): Promise<readonly Fetched<Asked>[]> {
    const broker = metadata.brokers.get(node)
    if (broker === undefined) throw new EngineError('ERR_STORAGE_BUSY', `the broker ${node} is not known yet`)
    const byPlace = new Map(wanted.map((each) => [`${each.topicId}/${each.partition}`, each]))
    const [connection, version] = await Promise.all([this.#pool.get(broker), this.#version()])
    const topics = [...Map.groupBy(wanted, ({ topicId }) => topicId)].map(([topicId, partitions]) => ({
      topicId,
      partitions: partitions.map(({ partition, from, bytesMax }) => ({
        ...{ partition, fetchOffset: BigInt(from), partitionMaxBytes: bytesMax },
        ...{ currentLeaderEpoch: -1, lastFetchedEpoch: -1 },
      })),
    }))
    const { errorCode, partitions } = await new Promise<Answer>((resolve, reject) => {
      const { waitMs, bytesMax } = bounds
      const request = () =>
        this.#client[`fetchV${version}`].createRequest(
          waitMs,
          BYTES_MIN,
          bytesMax,
          LEVELS[this.#isolation],
          NO_SESSION,
          NO_EPOCH,
          topics,
          [],
          '',
        )
      const { key } = this.#client.fetchV17.api
      connection.send<Answer>(key, version, request, parseAnswer, true, true, (error, answer) =>
        error === null && answer !== undefined ? resolve(answer) : reject(error),
      )
    })
    if (errorCode !== 0) throw new this.#client.ProtocolError(errorCode)
    return partitions.flatMap(({ topicId, partition, ...fetched }) => {
      const asked = byPlace.get(`${topicId}/${partition}`)
      return asked === undefined ? [] : [{ ...fetched, wanted: asked }]
    })
  }

  /** The newest that the broker and the client both speak. */
  #version(): Promise<13 | 14 | 15 | 16 | 17> {
    return new Promise((resolve, reject) => {
      this.#raw[this.#client.kGetApi]<unknown[], unknown>('Fetch', (error, api?: API<unknown[], unknown>) => {
        const version = api?.version ?? 0
        if (error !== null) reject(error)
        else if (isSpoken(version)) resolve(version)
        else reject(new EngineError('ERR_STORAGE_FAILED', 'the broker is older than Kafka 3.1; upgrade it'))
      })
    })
  }

  async close(): Promise<void> {
    await this.#pool.close()
    await this.#raw.close(true)
  }
}

function isSpoken(version: number): version is 13 | 14 | 15 | 16 | 17 {
  return version >= VERSION_MIN && version <= VERSION_MAX
}

/** As of version 13; later versions differ in fields that are not read. */
function parseAnswer(_correlationId: number, _key: number, _version: number, reader: ResponseReader): Answer {
  // How long we were throttled.
  reader.readInt32()
  const errorCode = reader.readInt16()
  // The id of the session, which is not used.
  reader.readInt32()
  const topics = reader.readArray((topic) => {
    const topicId = topic.readUUID()
    return topic.readArray((partition) => ({ topicId, ...parsePartition(partition) }), true, true)
  })
  return { errorCode, partitions: topics.flat() }
}

function parsePartition(reader: ResponseReader) {
  const partition = reader.readInt32()
  const errorCode = reader.readInt16()
  // The ends of the log: all of it, its stable part, and its beginning.
  for (let bound = 0; bound < 3; bound += 1) reader.readInt64()
  const aborted = reader.readNullableArray((transaction) => {
    const producerId = transaction.readInt64()
    return { producerId, firstOffset: Number(transaction.readInt64()) }
  })
  // A replica that might be nearer.
  reader.readInt32()
  const length = reader.readUnsignedVarInt() - 1
  const batches = length > 0 ? reader.buffer.slice(reader.position, reader.position + length) : null
  reader.skip(Math.max(0, length))
  return { partition, errorCode, batches, aborted: aborted ?? NO_ABORTS }
}
