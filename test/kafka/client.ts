/** The parts of @platformatic/kafka that the engine stands on, as small as the contract tests need them. */
import {
  type Broker,
  type ConnectionPool,
  Consumer,
  type ConsumerOptions,
  findErrorBy,
  type GroupOptions,
  type heartbeatV4,
  kGetApi,
  type offsetCommitV9,
  Producer,
  stringSerializers,
} from '@platformatic/kafka'
import type { KafkaServer } from '../servers/kafka.ts'

export type Raw = Consumer<Buffer, Buffer, Buffer, Buffer>

/** Short, so that an eviction does not take long; a machine may stand still for a second or two. */
export const SESSION_MS = 4_000
/** For members that must not be evicted, however slow the machine is. */
export const LASTING_MS = 60_000
const HEARTBEAT_MS = 200

const opened: { close(force?: boolean): Promise<void> }[] = []

/** For `after`: closes all that was opened here, also what a failed test left. */
export async function closeAll(): Promise<void> {
  await Promise.allSettled(opened.splice(0).map((client) => client.close(true)))
}

/** Joins, beats and leaves; never reads. */
export function openMember(server: KafkaServer, group: string, options: GroupOptions = {}): Raw {
  const given: ConsumerOptions<Buffer, Buffer, Buffer, Buffer> = {
    clientId: 'millrace-tests',
    bootstrapBrokers: [server.address],
    groupId: group,
    protocols: [{ name: 'cooperative-sticky', version: 3 }],
    sessionTimeout: LASTING_MS,
    heartbeatInterval: HEARTBEAT_MS,
    rebalanceTimeout: LASTING_MS,
    retries: true,
    retryDelay: 100,
    ...options,
  }
  const member: Raw = new Consumer(given)
  // A join that is under way when the member closes fails with a bare error event, which ends a process without a listener.
  member.on('error', () => {})
  opened.push(member)
  return member
}

export async function join(member: Raw, topic: string): Promise<void> {
  member.topics.track(topic)
  await member.joinGroup({})
}

export function partitionsOf(member: Raw): readonly number[] {
  return (member.assignments ?? []).flatMap(({ partitions }) => partitions).sort((a, b) => a - b)
}

/** Reads and never joins. */
export function openReader(server: KafkaServer): Raw {
  const reader: Raw = new Consumer({
    clientId: 'millrace-tests',
    bootstrapBrokers: [server.address],
    groupId: 'millrace-tests-reader',
    retries: 0,
  })
  opened.push(reader)
  return reader
}

export function openProducer(server: KafkaServer, options: { idempotent?: boolean; retries?: number } = {}) {
  const producer = new Producer({
    clientId: 'millrace-tests',
    bootstrapBrokers: [server.address],
    serializers: stringSerializers,
    acks: -1,
    retryDelay: 100,
    ...options,
  })
  opened.push(producer)
  return producer
}

/** `count` records with the values `0`, `1`, … into one partition. */
export async function produce(server: KafkaServer, topic: string, partition: number, count: number): Promise<void> {
  const producer = openProducer(server)
  const messages = Array.from({ length: count }, (_, n) => ({ topic, partition, value: String(n) }))
  await producer.send({ messages })
  await producer.close()
}

export interface Pinned {
  readonly group: string
  readonly member: string
  readonly generation: number
}

/** Who this member is now, to be used later however often it has joined since. */
export function pin(member: Raw): Pinned {
  return { group: member.groupId, member: member.memberId ?? '', generation: member.generationId }
}

export async function coordinatorOf(member: Raw): Promise<Broker> {
  const node = await member.findGroupCoordinator()
  const broker = member.currentMetadata?.brokers.get(node)
  if (broker === undefined) throw new Error(`no broker ${node}`)
  return broker
}

/** OffsetCommit with the generation and the member that were pinned, and with metadata. */
export async function commitPinned(
  member: Raw,
  pinned: Pinned,
  topic: string,
  offsets: readonly { readonly partition: number; readonly offset: bigint; readonly metadata?: string }[],
): Promise<void> {
  const api = await new Promise<typeof offsetCommitV9.api>((resolve, reject) => {
    member[kGetApi]<offsetCommitV9.OffsetCommitRequest, offsetCommitV9.OffsetCommitResponse>(
      'OffsetCommit',
      (error, found) => (found === undefined ? reject(error) : resolve(found)),
    )
  })
  const connection = await member.connections.get(await coordinatorOf(member))
  const partitions = offsets.map(({ partition, offset, metadata = '' }) => ({
    partitionIndex: partition,
    committedOffset: offset,
    committedLeaderEpoch: -1,
    committedMetadata: metadata,
  }))
  await api.async(connection, pinned.group, pinned.generation, pinned.member, null, [{ name: topic, partitions }])
}

/** One heartbeat of one's own. Answers `ok` or Kafka's name of the error. */
export async function beat(member: Raw, pinned: Pinned): Promise<string> {
  const api = await new Promise<typeof heartbeatV4.api>((resolve, reject) => {
    member[kGetApi]<heartbeatV4.HeartbeatRequest, heartbeatV4.HeartbeatResponse>('Heartbeat', (error, found) =>
      found === undefined ? reject(error) : resolve(found),
    )
  })
  const connection = await member.connections.get(await coordinatorOf(member))
  return outcomeOf(api.async(connection, pinned.group, pinned.generation, pinned.member, null))
}

const KNOWN = [
  'UNKNOWN_MEMBER_ID',
  'ILLEGAL_GENERATION',
  'REBALANCE_IN_PROGRESS',
  'OFFSET_METADATA_TOO_LARGE',
  'OFFSET_OUT_OF_RANGE',
  'INVALID_FETCH_SESSION_EPOCH',
  'TOPIC_ALREADY_EXISTS',
  'POLICY_VIOLATION',
]

/** `ok`, or the name that Kafka gives the error, however deep the client has wrapped it. */
export function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error: unknown) => {
      if (!(error instanceof Error)) throw error
      return KNOWN.find((id) => findErrorBy(error, 'apiId', id) !== null) ?? String(error)
    },
  )
}

export interface Position {
  readonly partition: number
  readonly offset: bigint
}

export interface Fetched extends Position {
  readonly value: string
}

export interface FetchLimits {
  readonly maxWaitMs?: number
  readonly partitionBytes?: number
  readonly pool?: ConnectionPool
}

/** One fetch from these positions. Whole batches come: records before the position are dropped here. */
export async function fetchFrom(
  reader: Raw,
  topic: string,
  positions: readonly Position[],
  { maxWaitMs = 500, partitionBytes = 262_144, pool }: FetchLimits = {},
): Promise<readonly Fetched[]> {
  reader.topics.track(topic)
  const known = (await reader.metadata({ topics: [topic] })).topics.get(topic)
  if (known === undefined) throw new Error(`no topic ${topic}`)
  const response = await reader.fetch({
    node: known.partitions[0]?.leader ?? -1,
    minBytes: 1,
    maxWaitTime: maxWaitMs,
    maxBytes: 1_000_000,
    ...(pool === undefined ? {} : { connectionPool: pool }),
    topics: [
      {
        topicId: known.id,
        partitions: positions.map(({ partition, offset }) => ({
          partition,
          fetchOffset: offset,
          currentLeaderEpoch: -1,
          lastFetchedEpoch: -1,
          partitionMaxBytes: partitionBytes,
        })),
      },
    ],
  })
  const from = new Map(positions.map(({ partition, offset }) => [partition, offset]))
  return response.responses
    .flatMap(({ partitions }) => partitions)
    .flatMap(({ partitionIndex, records }) =>
      (records ?? []).flatMap((batch) =>
        batch.records.map((record) => ({
          partition: partitionIndex,
          offset: batch.firstOffset + BigInt(record.offsetDelta),
          value: String(record.value),
        })),
      ),
    )
    .filter(({ partition, offset }) => offset >= (from.get(partition) ?? 0n))
    .sort((a, b) => a.partition - b.partition || Number(a.offset - b.offset))
}

/** Looks again and again until it is so. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
