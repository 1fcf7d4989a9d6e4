/** What the doctor is told about the group, its topics with their dead letters, and how far it is; read once. */
import { OVERDUE_MS } from '../../doctor/jobs.ts'
import type { KafkaFacts, KafkaPartition, KafkaTopic, TopicSettings } from '../../doctor/kafka.ts'
import { type DeadLetterTopic, OPEN_TRANSACTION_MS } from '../../doctor/kafka-topics.ts'
import { decodeProgress } from './commit-metadata.ts'
import { configsOf, numberOf, type Settings } from './configs.ts'
import type { Admin, Client } from './driver.ts'
import { countOf } from './offset-ranges.ts'
import { type Committed, committedOf, isFor, newestOf, offsetsOf } from './offsets.ts'
import { type KafkaOptions, statesTopicOf } from './options.ts'
import { DLQ_SUFFIX, dlqTopicOf, nameOf, type PartitionName } from './record.ts'
import { jobTopicsOf, letterBytesMax } from './topics.ts'

export interface TopicFacts extends KafkaFacts {
  readonly letters: readonly DeadLetterTopic[]
  /** Where the state of each dead letter is kept; null before the first act on one. */
  readonly states: KafkaTopic | null
  /** Topics that a member reads, and that do not exist. */
  readonly missing: readonly string[]
}

/** A partition as the broker tells it. */
export interface PartitionOffsets extends PartitionName {
  readonly leader: number
  readonly replicas: number
  readonly inSync: number
  readonly begin: bigint
  readonly end: bigint
  /** Where the first open transaction begins; `end` without one. */
  readonly stable: bigint
  /** The first record younger than OPEN_TRANSACTION_MS; `end` without one. */
  readonly recent: bigint
  /** The first record younger than OVERDUE_MS; `end` without one. */
  readonly young: bigint
  readonly newestMs: number | null
  readonly committed: Committed | null
}

export function partitionFacts(partition: PartitionOffsets): KafkaPartition {
  const { leader, replicas, inSync, begin, end, stable, recent, newestMs, committed } = partition
  return {
    ...{ name: nameOf(partition), leader, replicas, inSync, newestMs },
    records: Number(end - begin),
    lag: Number(end - nextOf(partition)),
    overdue: overdueIn(partition),
    lost: committed !== null && committed.offset < begin ? Number(begin - committed.offset) : 0,
    retries: retriesIn(partition),
    held: stable < end && stable < recent ? { fromOffset: stable, records: Number(end - stable) } : null,
  }
}

/** Where the group goes on. */
function nextOf({ begin, end, committed }: PartitionOffsets): bigint {
  const next = committed === null || committed.offset < begin ? begin : committed.offset
  return next > end ? end : next
}

/** Records finished above the committed offset are settled, though the offset has not passed them. */
function overdueIn(partition: PartitionOffsets): number {
  const next = nextOf(partition)
  if (partition.young <= next) return 0
  const { finished } = decodeProgress(Number(next), partition.committed?.metadata ?? null)
  return Math.max(0, Number(partition.young - next) - countOf(finished, Number(partition.young)))
}

function retriesIn({ committed }: PartitionOffsets): number {
  const { retryStates } = decodeProgress(Number(committed?.offset ?? 0n), committed?.metadata ?? null)
  return [...retryStates].filter(([, { starts, dueMs }]) => starts > 1 || dueMs > 0).length
}

const TOPIC_SETTINGS = [
  'cleanup.policy',
  'max.message.bytes',
  'min.insync.replicas',
  'retention.bytes',
  'retention.ms',
  'unclean.leader.election.enable',
]

export function topicSettings(settings: Settings): TopicSettings {
  return {
    cleanupPolicy: settings.get('cleanup.policy') ?? null,
    messageBytesMax: numberOf(settings, 'max.message.bytes'),
    inSyncMin: numberOf(settings, 'min.insync.replicas'),
    retentionBytes: numberOf(settings, 'retention.bytes'),
    retentionMs: numberOf(settings, 'retention.ms'),
    allowsUncleanLeader: settings.get('unclean.leader.election.enable') === 'true',
  }
}

export function deadLetterTopic(jobs: KafkaTopic, topic: KafkaTopic | null): DeadLetterTopic {
  const recordBytesMax = jobs.settings.messageBytesMax ?? 0
  const name = dlqTopicOf(jobs.name)
  return { jobs: jobs.name, name, topic, recordBytesMax, letterBytesMax: letterBytesMax(recordBytesMax) }
}

export interface TopicSources {
  readonly admin: Admin
  readonly client: Client
  readonly options: KafkaOptions
  /** Topics that this process has used. */
  readonly topics: Iterable<string>
  readonly nowMs: number
}

export async function readTopics({ admin, client, options, topics, nowMs }: TopicSources): Promise<TopicFacts> {
  const [group, committed, existing] = await Promise.all([
    readGroup(admin, options.group),
    committedOf(admin, options.group),
    admin.listTopics().then((found) => new Set(found)),
  ])
  const read = [...new Set(group.members.flatMap((member) => member.topics))]
  const names = jobTopicsOf(existing, { ...options, known: [...topics, ...read], committed: committed.values() })
  const states = statesTopicOf(options)
  const beside = [...names.map(dlqTopicOf), states].filter((name) => existing.has(name))
  const found = await readPartitions(admin, client, [...names, ...beside], { ...options, committed, nowMs })
  const jobs = names.flatMap((name) => found.get(name) ?? [])
  return {
    group: { ...group, hasCommits: committed.size > 0 },
    jobs,
    letters: jobs.map((topic) => deadLetterTopic(topic, found.get(dlqTopicOf(topic.name)) ?? null)),
    states: found.get(states) ?? null,
    missing: read.filter((name) => !existing.has(name) && !name.endsWith(DLQ_SUFFIX)),
  }
}

async function readGroup(admin: Admin, name: string): Promise<Omit<KafkaFacts['group'], 'hasCommits'>> {
  const group = (await admin.describeGroups({ groups: [name] })).get(name)
  const members = [...(group?.members.values() ?? [])].map(({ clientHost, metadata, assignments }) => ({
    host: clientHost.replace(/^\//, ''),
    topics: metadata?.topics ?? [],
    partitions: [...(assignments?.values() ?? [])].reduce((sum, { partitions }) => sum + partitions.length, 0),
  }))
  return { name, state: group?.state ?? 'Dead', protocol: group?.protocol ?? '', members }
}

/** Null for what was committed for a topic of the same name that is deleted. */
function knownOf(known: Committed, topicId: string): Committed | null {
  return isFor(known, topicId) ? known : null
}

async function readPartitions(
  admin: Admin,
  client: Client,
  names: readonly string[],
  {
    committed,
    nowMs,
    from,
  }: { readonly committed: ReadonlyMap<string, Committed>; readonly nowMs: number } & Pick<KafkaOptions, 'from'>,
): Promise<ReadonlyMap<string, KafkaTopic>> {
  if (names.length === 0) return new Map()
  const { topics } = await admin.metadata({ topics: [...names], forceUpdate: true })
  // A partition without a leader has no offsets to tell, and asking for them would fail the whole call.
  const led = [...topics].flatMap(([topic, { partitions }]) =>
    partitions.flatMap(({ leader }, partition) => (leader < 0 ? [] : [{ topic, partition }])),
  )
  const [begins, ends, stables, recents, youngs, newest, settings] = await Promise.all([
    offsetsOf(admin, led, -2n),
    offsetsOf(admin, led, -1n),
    offsetsOf(admin, led, -1n, 'read_committed'),
    offsetsOf(admin, led, BigInt(nowMs - OPEN_TRANSACTION_MS)),
    offsetsOf(admin, led, BigInt(nowMs - OVERDUE_MS)),
    newestOf(admin, led),
    configsOf(admin, client.ConfigResourceTypes.TOPIC, names, TOPIC_SETTINGS),
  ])
  const views = [...topics].map(([name, topic]): KafkaTopic => {
    const partitions = topic.partitions.map(({ leader, replicas, isr }, partition): KafkaPartition => {
      const place = nameOf({ topic: name, partition })
      const [begin, end] = [begins.get(place) ?? 0n, ends.get(place) ?? 0n]
      const [young, recent] = [youngs.get(place) ?? -1n, recents.get(place) ?? -1n]
      const known = committed.get(place)
      const unbegun = from === 'latest' ? { offset: end, metadata: null } : null
      return partitionFacts({
        ...{ topic: name, partition, leader, replicas: replicas.length, inSync: isr.length, begin, end },
        stable: stables.get(place) ?? end,
        recent: recent < 0n ? end : recent,
        young: young < 0n ? end : young,
        newestMs: newest.get(place) ?? null,
        committed: known === undefined ? unbegun : knownOf(known, topic.id),
      })
    })
    return { name, partitions, settings: topicSettings(settings.get(name) ?? new Map()) }
  })
  return new Map(views.map((view) => [view.name, view]))
}
