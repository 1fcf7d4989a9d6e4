/** What a diagnosis reads once: the group, its topics with their dead letters, and how far it is. */

import type { Admin, Client } from '../driver.ts'
import { type Committed, committedOf, isFor, newestOf, offsetsOf } from '../offsets.ts'
import { type KafkaOptions, statesTopicOf } from '../options.ts'
import { DLQ_SUFFIX, dlqTopicOf, nameOf, type PartitionName } from '../record.ts'
import { jobTopicsOf } from '../topics.ts'
import { configsOf, type Settings } from './settings.ts'

export interface PartitionView extends PartitionName {
  /** -1 where nobody leads it. */
  readonly leader: number
  readonly replicas: number
  /** Of these, those that have everything. */
  readonly inSync: number
  readonly begin: bigint
  readonly end: bigint
  /** Where the first open transaction begins; `end` where none is open. */
  readonly stable: bigint
  /** The first record that is younger than OPEN_MS; `end` where none is. */
  readonly recent: bigint
  /** The first record that is younger than OVERDUE_MS; `end` where none is. */
  readonly young: bigint
  /** By its producer's clock. Null where there is none. */
  readonly newestMs: number | null
  readonly committed: Committed | null
}

export interface TopicView {
  readonly name: string
  readonly partitions: readonly PartitionView[]
  readonly settings: Settings
}

export interface MemberView {
  readonly host: string
  readonly topics: readonly string[]
  readonly partitions: number
}

export interface GroupView {
  readonly name: string
  /** As Kafka calls it: Stable, Empty, Dead (nobody ever joined), PreparingRebalance, CompletingRebalance. */
  readonly state: string
  readonly protocol: string
  readonly members: readonly MemberView[]
  readonly hasCommits: boolean
}

export interface Survey {
  readonly group: GroupView
  readonly jobs: readonly TopicView[]
  /** By the name of the topic of jobs. */
  readonly letters: ReadonlyMap<string, TopicView>
  /** Where the desk keeps what became of letters; null before its first act. */
  readonly states: TopicView | null
  /** Topics that a member reads, and that are not there. */
  readonly missing: readonly string[]
}

/** A record that is older and not settled is overdue. */
export const OVERDUE_MS = 3_600_000

/** A transaction that is open for longer holds its partition back. */
export const OPEN_MS = 60_000

const TOPIC_SETTINGS = [
  'cleanup.policy',
  'max.message.bytes',
  'min.insync.replicas',
  'retention.bytes',
  'retention.ms',
  'unclean.leader.election.enable',
]

export interface SurveyParts {
  readonly admin: Admin
  readonly client: Client
  readonly options: KafkaOptions
  /** Topics that this process has used. */
  readonly topics: Iterable<string>
  readonly nowMs: number
}

export async function survey({ admin, client, options, topics, nowMs }: SurveyParts): Promise<Survey> {
  const [group, committed, existing] = await Promise.all([
    groupOf(admin, options.group),
    committedOf(admin, options.group),
    admin.listTopics().then((found) => new Set(found)),
  ])
  const read = [...new Set(group.members.flatMap((member) => member.topics))]
  const known = [...topics, ...read]
  const names = jobTopicsOf(existing, { ...options, known, committed: committed.values() })
  const letters = names.map(dlqTopicOf).filter((name) => existing.has(name))
  const states = statesTopicOf(options)
  const beside = existing.has(states) ? [...letters, states] : letters
  const views = await viewsOf(admin, client, [...names, ...beside], { committed, nowMs })
  const jobs = names.flatMap((name) => views.get(name) ?? [])
  return {
    group: { ...group, hasCommits: committed.size > 0 },
    jobs,
    letters: new Map(jobs.flatMap(({ name }) => [[name, views.get(dlqTopicOf(name))] as const].filter(isThere))),
    states: views.get(states) ?? null,
    missing: read.filter((name) => !existing.has(name) && !name.endsWith(DLQ_SUFFIX)),
  }
}

function isThere(entry: readonly [string, TopicView | undefined]): entry is readonly [string, TopicView] {
  return entry[1] !== undefined
}

async function groupOf(admin: Admin, name: string): Promise<Omit<GroupView, 'hasCommits'>> {
  const group = (await admin.describeGroups({ groups: [name] })).get(name)
  const members = [...(group?.members.values() ?? [])].map(({ clientHost, metadata, assignments }) => ({
    host: clientHost.replace(/^\//, ''),
    topics: metadata?.topics ?? [],
    partitions: [...(assignments?.values() ?? [])].reduce((sum, { partitions }) => sum + partitions.length, 0),
  }))
  return { name, state: group?.state ?? 'Dead', protocol: group?.protocol ?? '', members }
}

async function viewsOf(
  admin: Admin,
  client: Client,
  names: readonly string[],
  { committed, nowMs }: { readonly committed: ReadonlyMap<string, Committed>; readonly nowMs: number },
): Promise<ReadonlyMap<string, TopicView>> {
  if (names.length === 0) return new Map()
  const { topics } = await admin.metadata({ topics: [...names], forceUpdate: true })
  // A partition that nobody leads tells no offsets, and asking for them would hide all that can be told.
  const led = [...topics].flatMap(([topic, { partitions }]) =>
    partitions.flatMap(({ leader }, partition) => (leader < 0 ? [] : [{ topic, partition }])),
  )
  const [begins, ends, stables, recents, youngs, newest, settings] = await Promise.all([
    offsetsOf(admin, led, -2n),
    offsetsOf(admin, led, -1n),
    offsetsOf(admin, led, -1n, 'read_committed'),
    offsetsOf(admin, led, BigInt(nowMs - OPEN_MS)),
    offsetsOf(admin, led, BigInt(nowMs - OVERDUE_MS)),
    newestOf(admin, led),
    configsOf(admin, client.ConfigResourceTypes.TOPIC, names, TOPIC_SETTINGS),
  ])
  const views = [...topics].map(([name, topic]): TopicView => {
    const partitions = topic.partitions.map(({ leader, replicas, isr }, partition): PartitionView => {
      const place = nameOf({ topic: name, partition })
      const [begin, end] = [begins.get(place) ?? 0n, ends.get(place) ?? 0n]
      const [young, recent] = [youngs.get(place) ?? -1n, recents.get(place) ?? -1n]
      const known = committed.get(place)
      return {
        ...{ topic: name, partition, leader, replicas: replicas.length, inSync: isr.length, begin, end },
        stable: stables.get(place) ?? end,
        recent: recent < 0n ? end : recent,
        young: young < 0n ? end : young,
        newestMs: newest.get(place) ?? null,
        committed: known !== undefined && isFor(known, topic.id) ? known : null,
      }
    })
    return { name, partitions, settings: settings.get(name) ?? new Map() }
  })
  return new Map(views.map((view) => [view.name, view]))
}
