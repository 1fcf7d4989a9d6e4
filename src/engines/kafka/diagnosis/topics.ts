/** The topics: whether they are there, how many copies there are, and whether Kafka keeps what nobody has settled. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import { numberOf } from './settings.ts'
import { OVERDUE_MS, type Survey, type TopicView } from './survey.ts'

const DAY_MS = 86_400_000

export function judgeTopics({ jobs, missing, group }: Survey): readonly Finding[] {
  if (missing.length > 0) {
    return missing.map((name) =>
      failure(
        'topics',
        `'${name}' does not exist, and members of '${group.name}' read it`,
        `Create it again: kafka-topics.sh --create --topic ${name}; its old records are gone.`,
      ),
    )
  }
  const partitions = jobs.reduce((sum, topic) => sum + topic.partitions.length, 0)
  return [ok('topics', `${plural(jobs.length, 'topic')} of jobs with ${plural(partitions, 'partition')}`)]
}

/** Of topics of jobs and of letters alike. */
export function judgeReplication(topics: readonly TopicView[]): readonly Finding[] {
  const findings = [...topics.flatMap(judgeCopies), ...judgeSingle(topics), ...topics.flatMap(judgeElection)]
  if (findings.length > 0) return findings
  return [ok('replication', `every partition of ${plural(topics.length, 'topic')} has all its copies`)]
}

function judgeCopies({ name, partitions, settings }: TopicView): readonly Finding[] {
  const needed = numberOf(settings, 'min.insync.replicas') ?? 1
  const leaderless = partitions.filter(({ leader }) => leader < 0).length
  if (leaderless > 0) {
    return [
      failure(
        'replication',
        `${plural(leaderless, 'partition')} of '${name}' without a leader: nothing of it is read or written`,
        'Start the brokers that have its copies (kafka-topics.sh --describe --unavailable-partitions).',
      ),
    ]
  }
  const copies = Math.min(...partitions.map(({ replicas }) => replicas))
  const inSync = Math.min(...partitions.map((partition) => partition.inSync))
  const text = `'${name}' has ${inSync} of ${copies} copies in sync`
  if (inSync < needed) {
    return [
      failure('replication', `${text} and needs ${needed}: enqueue is refused`, 'Start the brokers that are missing.'),
    ]
  }
  if (inSync < copies) {
    return [warning('replication', text, 'Start the brokers that are missing, or look why they are behind.')]
  }
  if (copies > 1 && needed === 1) {
    return [
      warning(
        'replication',
        `'${name}' has ${copies} copies and min.insync.replicas=1: what one broker alone has acknowledged is lost with it`,
        `Set min.insync.replicas=${copies - 1 || 1} for the topic.`,
      ),
    ]
  }
  if (copies > 1 && needed === copies) {
    return [
      warning(
        'replication',
        `'${name}' has ${copies} copies and needs all of them: enqueue is refused while one broker is away`,
        `Set min.insync.replicas=${copies - 1} for the topic, or give it one more copy.`,
      ),
    ]
  }
  return []
}

function judgeSingle(topics: readonly TopicView[]): readonly Finding[] {
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

function judgeElection({ name, settings }: TopicView): readonly Finding[] {
  if (settings.get('unclean.leader.election.enable') !== 'true') return []
  return [
    warning(
      'replication',
      `'${name}' lets a copy lead that lacks records: acknowledged jobs may vanish`,
      `Set unclean.leader.election.enable=false for the topic.`,
    ),
  ]
}

/** Kafka deletes by age and size whether somebody has settled a record or not. */
export function judgeRetention({ jobs }: Survey): readonly Finding[] {
  const findings = jobs.flatMap(({ name, settings }): readonly Finding[] => {
    const keptMs = numberOf(settings, 'retention.ms') ?? -1
    if ((settings.get('cleanup.policy') ?? '').includes('compact')) {
      return [
        warning(
          'retention',
          `'${name}' is compacted: of several waiting jobs of one key only the last may remain`,
          'Set cleanup.policy=delete for a topic of jobs, unless that is what you want.',
        ),
      ]
    }
    if (keptMs < 0 || keptMs >= DAY_MS) return []
    const judge = keptMs <= OVERDUE_MS ? failure : warning
    return [
      judge(
        'retention',
        `'${name}' keeps records for ${formatAge(keptMs)}: what waits longer is deleted unsettled`,
        'Raise retention.ms of the topic above the longest time that work may stand still.',
      ),
    ]
  })
  if (findings.length > 0) return findings
  return [ok('retention', `records stay for a day or longer on ${plural(jobs.length, 'topic')}`)]
}
