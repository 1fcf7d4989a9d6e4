/** What only Kafka has: brokers, the consumer group and how far it is. */
import type { DiagnoseOptions, Finding } from '../engine/engine.ts'
import { failure, formatAge, ok, plural, warning } from './findings.ts'

export interface KafkaPartition {
  /** Such as «jobs/0». */
  readonly name: string
  /** -1 without a leader. */
  readonly leader: number
  readonly replicas: number
  /** The replicas that have every record. */
  readonly inSync: number
  /** All records that are there. */
  readonly records: number
  /** Records between the committed offset and the end; without a commit, all. */
  readonly lag: number
  /** Records unsettled for longer than OVERDUE_MS. */
  readonly overdue: number
  /** Records deleted before the group settled them. */
  readonly lost: number
  /** Records that wait for a retry. */
  readonly retries: number
  /** Records behind a transaction that has been open for longer than OPEN_TRANSACTION_MS. */
  readonly held: { readonly fromOffset: bigint; readonly records: number } | null
  /** Date of the newest record, by its producer's clock. */
  readonly newestMs: number | null
}

/** Null where the broker does not say. */
export interface TopicSettings {
  readonly cleanupPolicy: string | null
  readonly messageBytesMax: number | null
  readonly inSyncMin: number | null
  readonly retentionBytes: number | null
  readonly retentionMs: number | null
  readonly allowsUncleanLeader: boolean
}

export interface KafkaTopic {
  readonly name: string
  readonly partitions: readonly KafkaPartition[]
  readonly settings: TopicSettings
}

export interface KafkaGroup {
  readonly name: string
  /** As Kafka calls it: Stable, Empty, Dead (never used), PreparingRebalance, CompletingRebalance. */
  readonly state: string
  readonly protocol: string
  readonly members: readonly {
    readonly host: string
    readonly topics: readonly string[]
    readonly partitions: number
  }[]
  readonly hasCommits: boolean
}

export interface KafkaFacts {
  readonly group: KafkaGroup
  /** Topics of jobs. */
  readonly jobs: readonly KafkaTopic[]
}

export function judgeBrokers(
  brokers: readonly { readonly id: number; readonly address: string; readonly isReached: boolean }[],
): readonly Finding[] {
  const away = brokers.filter(({ isReached }) => !isReached)
  if (away.length === 0) return [ok('brokers', `${plural(brokers.length, 'broker')}, and each answers`)]
  return away.map(({ id, address }) =>
    failure(
      'brokers',
      `broker ${id} does not answer at ${address}, which the cluster gives as its address: its partitions stand still`,
      'Start it. If it runs, make sure that its advertised.listeners can be reached from here.',
    ),
  )
}

/** By the newest version of Fetch that a broker supports: no broker reports its own version. */
const FETCH_OF_KAFKA: readonly (readonly [version: number, kafka: string])[] = [
  [18, '4.1'],
  [17, '3.9'],
  [16, '3.7'],
  [15, '3.5'],
  [13, '3.1'],
]
/** Millrace fetches by the ids of topics. */
const FETCH_MIN = 13
const FETCH_TESTED = 18

export function judgeBrokerVersion(
  protocols: readonly { readonly name: string; readonly minVersion: number; readonly maxVersion: number }[],
): Finding {
  const fetch = protocols.find(({ name }) => name === 'Fetch')
  if (fetch === undefined)
    return failure('broker version', 'it does not support Fetch', 'Give the address of a broker.')
  const known = FETCH_OF_KAFKA.find(([version]) => fetch.maxVersion >= version)?.[1] ?? 'an old'
  const text = `speaks the protocol of Kafka ${known}${fetch.maxVersion >= FETCH_TESTED ? ' or newer' : ''}`
  if (fetch.maxVersion < FETCH_MIN)
    return failure('broker version', `too old: ${text}`, 'Upgrade the brokers to Kafka 3.1 or newer.')
  // Kafka 4.0 removed the oldest versions of Fetch.
  if (fetch.maxVersion >= FETCH_TESTED || fetch.minVersion >= 4) return ok('broker version', text)
  return warning('broker version', `${text}, and Millrace is tested with 4.1`, 'Upgrade the brokers to Kafka 4.')
}

export interface SessionFacts {
  readonly sessionMs: number
  readonly heartbeatMs: number
  /** What the broker allows. */
  readonly minMs: number
  readonly maxMs: number
}

export function judgeSession({ sessionMs, heartbeatMs, minMs, maxMs }: SessionFacts): Finding {
  const text = `session ${formatAge(sessionMs)}, a heartbeat every ${heartbeatMs} ms`
  if (sessionMs < minMs || sessionMs > maxMs) {
    return failure(
      'timeouts',
      `${text}: the broker accepts no member with it, only with ${minMs} to ${maxMs} ms`,
      `Give ?session= a value in between, or change group.min.session.timeout.ms and group.max.session.timeout.ms.`,
    )
  }
  if (heartbeatMs * 3 > sessionMs) {
    return warning(
      'timeouts',
      `${text}: two lost heartbeats end a membership`,
      'Make ?session= three heartbeats or more.',
    )
  }
  return ok(
    'timeouts',
    `${text}: a handler that blocks the event loop for longer than the session loses its partitions`,
  )
}

/** Waiting handlers keep their membership however long they take; only a move of their partition ends them. */
export function judgeDrain(drainMs: number, handlerMs: number | null): Finding {
  const text = `a handler may go on for ${formatAge(drainMs)} when its partition moves; then it is aborted and started elsewhere`
  if (handlerMs === null || handlerMs <= drainMs) return ok('handlers', text)
  return warning(
    'handlers',
    `${text}, and handlers here take up to ${formatAge(handlerMs)}`,
    `Give ?drain=${handlerMs}, or make handlers stop on their signal and safe to repeat.`,
  )
}

/** A group without members for longer than this forgets its offsets. */
const OFFSETS_MINUTES_MIN = 24 * 60

export function judgeOffsets(minutes: number | null): readonly Finding[] {
  if (minutes === null || minutes >= OFFSETS_MINUTES_MIN) return []
  return [
    warning(
      'commits',
      `a group without members forgets its offsets after ${formatAge(minutes * 60_000)}, and begins anew`,
      'Raise offsets.retention.minutes of the brokers (default: 7 days).',
    ),
  ]
}

/** What Millrace's members join with. */
const PROTOCOL = 'cooperative-sticky'
const REBALANCING = ['PreparingRebalance', 'CompletingRebalance']

export function judgeGroup({ group, jobs }: KafkaFacts): Finding {
  const { members, protocol, state } = group
  if (members.length === 0) return judgeEmpty(group)
  const hosts = [...new Set(members.map(({ host }) => host))]
  const text = `'${group.name}' has ${plural(members.length, 'member')} on ${hosts.join(', ')}`
  if (REBALANCING.includes(state)) {
    return warning(
      'group',
      `${text}, and is rebalancing now`,
      'Look again in a minute. If it never ends, a member is too slow to join (see its log), or members come and go.',
    )
  }
  if (protocol !== PROTOCOL) {
    return warning(
      'group',
      `${text} that use '${protocol}': another program is in it, and workers cannot join`,
      'Give the workers another group: ?group=',
    )
  }
  const partitions = jobs
    .filter(({ name }) => members.some(({ topics }) => topics.includes(name)))
    .reduce((sum, topic) => sum + topic.partitions.length, 0)
  const idle = members.filter((member) => member.partitions === 0).length
  if (idle > 0) {
    return warning(
      'group',
      `${text}, and ${idle} of them have no partition, because the topics have ${partitions}`,
      'Add partitions (kafka-topics.sh --alter --partitions), or run fewer workers with more concurrency.',
    )
  }
  return ok('group', `${text} and ${plural(partitions, 'partition')}`)
}

function judgeEmpty({ name, state, hasCommits }: KafkaGroup): Finding {
  if (state === 'Dead' && hasCommits) {
    return warning(
      'group',
      `'${name}' is a group of Kafka's newer protocol: another program uses it, and workers cannot join`,
      'Give the workers another group: ?group=',
    )
  }
  const unused = `'${name}' has never worked on anything; another group is named by ?group= in the engine's URL`
  return ok('group', hasCommits ? `'${name}' has no member now` : unused)
}

export function lagOf({ partitions }: KafkaTopic): number {
  return partitions.reduce((sum, { lag }) => sum + lag, 0)
}

/** Waiting records, and no member that reads their topic. */
export function judgeReaders({ group, jobs }: KafkaFacts): readonly Finding[] {
  const read = new Set(group.members.flatMap(({ topics }) => topics))
  const unread = jobs.filter((topic) => !read.has(topic.name) && lagOf(topic) > 0)
  if (unread.length === 0) return [ok('workers', 'every topic with waiting records is read by a worker')]
  return unread.map((topic) =>
    warning(
      'workers',
      `'${topic.name}' has ${plural(lagOf(topic), 'waiting record')}, and no worker of the group '${group.name}' reads it`,
      `Start a worker of that type with ?group=${group.name}.`,
    ),
  )
}

const LAG_DEFAULT = Object.freeze({ warning: 1_000, critical: 10_000 })

/** Above a limit, not at it. `limits` by type. */
export function judgeLag(
  { jobs, group }: KafkaFacts,
  prefix: string,
  limits: NonNullable<DiagnoseOptions['lag']>,
): readonly Finding[] {
  const behind = jobs.flatMap((topic): readonly Finding[] => {
    const lag = lagOf(topic)
    const limit = limits[topic.name.slice(prefix.length)] ?? LAG_DEFAULT
    if (lag <= Math.min(limit.warning, limit.critical)) return []
    const isCritical = lag > limit.critical
    return [
      (isCritical ? failure : warning)(
        'lag',
        `'${group.name}' is ${plural(lag, 'record')} behind on '${topic.name}', more than ${isCritical ? limit.critical : limit.warning}`,
        group.members.length === 0
          ? 'Start a worker.'
          : 'Start more workers (up to one per partition), or give them more concurrency; see the log for jobs that fail.',
      ),
    ]
  })
  if (behind.length > 0) return behind
  const sum = jobs.reduce((total, topic) => total + lagOf(topic), 0)
  return [ok('lag', `${plural(sum, 'record')} behind over ${plural(jobs.length, 'topic')}`)]
}

/** Retention, or an operator, deleted what was not settled. */
export function judgeLost({ jobs }: KafkaFacts): readonly Finding[] {
  const lost = jobs
    .map(({ name, partitions }) => ({ name, count: partitions.reduce((sum, one) => sum + one.lost, 0) }))
    .filter(({ count }) => count > 0)
  if (lost.length === 0) return [ok('lost jobs', 'nothing was deleted before it was settled')]
  return lost.map(({ name, count }) =>
    failure(
      'lost jobs',
      `${plural(count, 'record')} of '${name}' deleted before the group settled them`,
      'Raise retention.ms and retention.bytes of the topic above the longest time that work may stand still, and produce them again.',
    ),
  )
}

/** `retriesMax`: how many records in retry a partition takes on; those behind them are not started. */
export function judgeRetries({ jobs }: KafkaFacts, retriesMax: number): readonly Finding[] {
  const full = jobs.flatMap(({ partitions }) => partitions).filter(({ retries }) => retries >= retriesMax)
  if (full.length === 0) return [ok('retries', `no partition has ${retriesMax} records that wait for a retry`)]
  return full.map(({ name, retries }) =>
    warning(
      'retries',
      `${plural(retries, 'record')} of ${name} wait for a retry; no other record of the partition is started until one of them is settled`,
      'See the log for why they fail. If the payload is of a newer version, deploy the worker that knows it.',
    ),
  )
}
