/** Kafka's topics: their replicas, how long records stay, and whether dead letters do. */
import type { Finding } from '../engine/engine.ts'
import { failure, formatAge, ok, plural, warning } from './findings.ts'
import { OVERDUE_MS } from './jobs.ts'
import type { KafkaTopic, TopicSettings } from './kafka.ts'

const DAY_MS = 86_400_000

/** `missing`: topics that members of the group read, and that do not exist. */
export function judgeTopics(
  jobs: readonly KafkaTopic[],
  missing: readonly string[],
  group: string,
): readonly Finding[] {
  if (missing.length > 0) {
    return missing.map((name) =>
      failure(
        'topics',
        `'${name}' does not exist, and members of '${group}' read it`,
        `Create it again: kafka-topics.sh --create --topic ${name}; its old records are gone.`,
      ),
    )
  }
  const partitions = jobs.reduce((sum, topic) => sum + topic.partitions.length, 0)
  return [ok('topics', `${plural(jobs.length, 'topic')} of jobs with ${plural(partitions, 'partition')}`)]
}

/** Of topics of jobs and of dead letters alike. */
export function judgeReplication(topics: readonly KafkaTopic[]): readonly Finding[] {
  const findings = [...topics.flatMap(judgeReplicas), ...judgeSingle(topics), ...topics.flatMap(judgeElection)]
  if (findings.length > 0) return findings
  return [ok('replication', `every partition of ${plural(topics.length, 'topic')} has all its replicas`)]
}

function judgeReplicas({ name, partitions, settings }: KafkaTopic): readonly Finding[] {
  const needed = settings.inSyncMin ?? 1
  const leaderless = partitions.filter(({ leader }) => leader < 0).length
  if (leaderless > 0) {
    return [
      failure(
        'replication',
        `${plural(leaderless, 'partition')} of '${name}' without a leader: nothing of it is read or written`,
        'Start the brokers that have its replicas (kafka-topics.sh --describe --unavailable-partitions).',
      ),
    ]
  }
  const replicas = Math.min(...partitions.map((partition) => partition.replicas))
  const inSync = Math.min(...partitions.map((partition) => partition.inSync))
  const text = `'${name}' has ${inSync} of ${replicas} replicas in sync`
  if (inSync < needed) {
    return [failure('replication', `${text} and needs ${needed}: enqueue is refused`, 'Start the missing brokers.')]
  }
  if (inSync < replicas) {
    return [warning('replication', text, 'Start the missing brokers, or find out why they are behind.')]
  }
  if (replicas > 1 && needed === 1) {
    return [
      warning(
        'replication',
        `'${name}' has ${replicas} replicas and min.insync.replicas=1: what one broker alone acknowledged is lost with it`,
        `Set min.insync.replicas=${replicas - 1 || 1} for the topic.`,
      ),
    ]
  }
  if (replicas > 1 && needed === replicas) {
    return [
      warning(
        'replication',
        `'${name}' has ${replicas} replicas and needs all of them: enqueue is refused while one broker is down`,
        `Set min.insync.replicas=${replicas - 1} for the topic, or give it one more replica.`,
      ),
    ]
  }
  return []
}

function judgeSingle(topics: readonly KafkaTopic[]): readonly Finding[] {
  const single = topics.filter(({ partitions }) => partitions.some(({ replicas }) => replicas === 1))
  const [first] = single
  if (first === undefined) return []
  const others = single.length === 1 ? '' : ` and ${plural(single.length - 1, 'other topic')}`
  return [
    warning(
      'replication',
      `'${first.name}'${others}: one copy of each record, which is lost with its broker's disk`,
      'On more than one broker: kafka-reassign-partitions.sh, and default.replication.factor=3 for new topics.',
    ),
  ]
}

function judgeElection({ name, settings }: KafkaTopic): readonly Finding[] {
  if (!settings.allowsUncleanLeader) return []
  return [
    warning(
      'replication',
      `'${name}' lets a replica lead that lacks records: acknowledged jobs may vanish`,
      `Set unclean.leader.election.enable=false for the topic.`,
    ),
  ]
}

/** Kafka deletes by age and size whether a record is settled or not. */
export function judgeRetention(jobs: readonly KafkaTopic[]): readonly Finding[] {
  const findings = jobs.flatMap(({ name, settings }): readonly Finding[] => {
    const keptMs = settings.retentionMs ?? -1
    if ((settings.cleanupPolicy ?? '').includes('compact')) {
      return [
        warning(
          'retention',
          `'${name}' is compacted: of several waiting jobs of one key only the last may remain`,
          'Set cleanup.policy=delete for a topic of jobs, unless that is what you want.',
        ),
      ]
    }
    if (keptMs < 0 || keptMs >= DAY_MS) return []
    return [
      (keptMs <= OVERDUE_MS ? failure : warning)(
        'retention',
        `'${name}' keeps records for ${formatAge(keptMs)}: what waits longer is deleted unsettled`,
        'Raise retention.ms of the topic above the longest time that work may stand still.',
      ),
    ]
  })
  if (findings.length > 0) return findings
  return [ok('retention', `records stay for a day or longer on ${plural(jobs.length, 'topic')}`)]
}

/** A transaction that is open for longer holds its partition back. */
export const OPEN_TRANSACTION_MS = 60_000

/** `readsUncommitted`: records of open transactions run as well. */
export function judgeTransactions(jobs: readonly KafkaTopic[], readsUncommitted: boolean): readonly Finding[] {
  if (readsUncommitted)
    return [ok('transactions', 'records run before their transaction is committed (isolation=read_uncommitted)')]
  const held = jobs.flatMap(({ partitions }) =>
    partitions.flatMap(({ name, held: behind }) => (behind === null ? [] : [{ name, ...behind }])),
  )
  const age = formatAge(OPEN_TRANSACTION_MS)
  if (held.length === 0)
    return [ok('transactions', `no partition is held back by a transaction that has been open for ${age}`)]
  return held.map(({ name, fromOffset, records }) =>
    warning(
      'transactions',
      `${plural(records, 'record')} of ${name} from offset ${fromOffset} on wait for the end of a transaction that has been open for more than ${age}`,
      'Find its producer with kafka-transactions.sh find-hanging, or describe-producers, and end it there or with abort. isolation=read_uncommitted runs records of open and aborted transactions too.',
    ),
  )
}

/** The dead-letter topic of a topic of jobs. */
export interface DeadLetterTopic {
  readonly jobs: string
  /** Its name, also while it does not exist. */
  readonly name: string
  readonly topic: KafkaTopic | null
  /** What the topic of jobs takes. */
  readonly recordBytesMax: number
  /** What the dead-letter topic must take for every letter to fit in one record. */
  readonly letterBytesMax: number
}

export interface DeadLetterFacts {
  readonly letters: readonly DeadLetterTopic[]
  /** Where the state of each letter is kept; null before the first act on one. */
  readonly states: KafkaTopic | null
  /** Whether a missing topic is created with the first letter. */
  readonly creates: boolean
  /** How long a letter is promised to stay. */
  readonly promisedMs: number
}

export function judgeDeadLetters({ letters, states, creates, promisedMs }: DeadLetterFacts): readonly Finding[] {
  const kept = letters.flatMap((letter) => {
    if (letter.topic === null) return creates ? [] : [judgeMissing(letter)]
    const { name, settings } = letter.topic
    return [...judgeAge(name, settings, promisedMs), ...judgePolicy(name, settings), ...judgeSize(letter, settings)]
  })
  const findings = [...kept, ...judgeStates(states)]
  if (findings.length > 0) return findings
  const topics = letters.flatMap(({ topic }) => topic ?? [])
  const count = topics.flatMap(({ partitions }) => partitions).reduce((sum, { records }) => sum + records, 0)
  return [
    ok('dead letters', `${plural(count, 'record')} in ${plural(topics.length, 'topic')}, and no broker deletes them`),
  ]
}

function judgeMissing({ jobs, name }: DeadLetterTopic): Finding {
  return failure(
    'dead letters',
    `'${name}' does not exist and partitions=0 creates none: the first job of '${jobs}' that dies will stop its partition`,
    `kafka-topics.sh --create --topic ${name} --partitions 1 --config retention.ms=-1`,
  )
}

function judgeAge(name: string, settings: TopicSettings, promisedMs: number): readonly Finding[] {
  const advice = `kafka-configs.sh --alter --topic ${name} --add-config retention.ms=-1,retention.bytes=-1`
  const [keptMs, bytes] = [settings.retentionMs ?? -1, settings.retentionBytes ?? -1]
  const deletes = `the broker deletes letters of '${name}'`
  if (keptMs >= 0 && keptMs < promisedMs) {
    const text = `${deletes} after ${formatAge(keptMs)}, seen or not; ${formatAge(promisedMs)} are promised`
    return [failure('dead letters', text, advice)]
  }
  if (keptMs >= 0) {
    const text = `${deletes} after ${formatAge(keptMs)} without archiving them, and financial ones must stay until resolved`
    return [warning('dead letters', text, advice)]
  }
  if (bytes >= 0) return [warning('dead letters', `${deletes} when they take more than ${bytes} bytes`, advice)]
  return []
}

function judgePolicy(name: string, { cleanupPolicy }: TopicSettings): readonly Finding[] {
  if ((cleanupPolicy ?? 'delete') === 'delete') return []
  return [
    warning(
      'dead letters',
      `'${name}' has cleanup.policy=${cleanupPolicy}: archived letters cannot be cut off`,
      `kafka-configs.sh --alter --topic ${name} --add-config cleanup.policy=delete`,
    ),
  ]
}

/** One record per letter must stay for ever, or a replayed letter looks as if it waited. */
function judgeStates(states: KafkaTopic | null): readonly Finding[] {
  if (states === null || states.settings.cleanupPolicy === 'compact') return []
  return [
    failure(
      'dead letters',
      `'${states.name}' has cleanup.policy=${states.settings.cleanupPolicy}: which letters were replayed or discarded will be forgotten`,
      `kafka-configs.sh --alter --topic ${states.name} --add-config cleanup.policy=compact`,
    ),
  ]
}

/** A letter holds its record and more. A letter that does not fit is written in parts. */
function judgeSize(
  { jobs, name, recordBytesMax, letterBytesMax }: DeadLetterTopic,
  settings: TopicSettings,
): readonly Finding[] {
  const bytes = settings.messageBytesMax ?? 0
  if (bytes >= letterBytesMax) return []
  return [
    warning(
      'dead letters',
      `'${name}' takes ${bytes} bytes and '${jobs}' ${recordBytesMax}: the letter of a large job is written in parts, which other programs cannot read`,
      `kafka-configs.sh --alter --topic ${name} --add-config max.message.bytes=${letterBytesMax}`,
    ),
  ]
}
