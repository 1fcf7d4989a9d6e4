/** The topics of dead letters: whether a letter can be written, and whether it stays until somebody has seen to it. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import { LETTER_AGE_MAX_MS, letterBytesMax } from '../dead-letters/retention.ts'
import { dlqTopicOf } from '../record.ts'
import { numberOf, type Settings } from './settings.ts'
import type { Survey, TopicView } from './survey.ts'

/** `creates`: whether a topic that is missing is created when the first letter comes. */
export function judgeLetters({ jobs, letters, states }: Survey, creates: boolean): readonly Finding[] {
  const kept = jobs.flatMap((topic) => {
    const found = letters.get(topic.name)
    return found === undefined ? judgeMissing(topic.name, creates) : judgeKept(topic, found)
  })
  const findings = [...kept, ...judgeStates(states)]
  if (findings.length > 0) return findings
  const count = [...letters.values()]
    .flatMap(({ partitions }) => partitions)
    .reduce((sum, { begin, end }) => sum + Number(end - begin), 0)
  return [
    ok('dead letters', `${plural(count, 'record')} in ${plural(letters.size, 'topic')}, and no broker deletes them`),
  ]
}

function judgeMissing(topic: string, creates: boolean): readonly Finding[] {
  if (creates) return []
  const name = dlqTopicOf(topic)
  return [
    failure(
      'dead letters',
      `'${name}' does not exist and partitions=0 creates none: the first job of '${topic}' that dies will stop its partition`,
      `kafka-topics.sh --create --topic ${name} --partitions 1 --config retention.ms=-1`,
    ),
  ]
}

function judgeKept(topic: TopicView, { name, settings }: TopicView): readonly Finding[] {
  return [...judgeAge(name, settings), ...judgePolicy(name, settings), ...judgeSize(topic, name, settings)]
}

function judgeAge(name: string, settings: Settings): readonly Finding[] {
  const advice = `kafka-configs.sh --alter --topic ${name} --add-config retention.ms=-1,retention.bytes=-1`
  const keptMs = numberOf(settings, 'retention.ms') ?? -1
  const bytes = numberOf(settings, 'retention.bytes') ?? -1
  const forgets = `the broker deletes letters of '${name}'`
  if (keptMs >= 0 && keptMs < LETTER_AGE_MAX_MS) {
    return [failure('dead letters', `${forgets} after ${formatAge(keptMs)}, seen or not; 30 d are promised`, advice)]
  }
  if (keptMs >= 0) {
    return [
      warning(
        'dead letters',
        `${forgets} after ${formatAge(keptMs)} without archiving them, and financial ones must stay until resolved`,
        advice,
      ),
    ]
  }
  if (bytes >= 0) return [warning('dead letters', `${forgets} when they take more than ${bytes} bytes`, advice)]
  return []
}

function judgePolicy(name: string, settings: Settings): readonly Finding[] {
  if ((settings.get('cleanup.policy') ?? 'delete') === 'delete') return []
  return [
    warning(
      'dead letters',
      `'${name}' has cleanup.policy=${settings.get('cleanup.policy')}: what is archived cannot be cut off`,
      `kafka-configs.sh --alter --topic ${name} --add-config cleanup.policy=delete`,
    ),
  ]
}

/** One record per letter for ever, or what was replayed looks as if it waited. */
function judgeStates(states: TopicView | null): readonly Finding[] {
  if (states === null) return []
  const { name, settings } = states
  const policy = settings.get('cleanup.policy')
  if (policy === 'compact') return []
  return [
    failure(
      'dead letters',
      `'${name}' has cleanup.policy=${policy}: which letters were replayed or discarded will be forgotten`,
      `kafka-configs.sh --alter --topic ${name} --add-config cleanup.policy=compact`,
    ),
  ]
}

/** A letter holds its record and more. One that does not fit is written in parts. */
function judgeSize(topic: TopicView, name: string, settings: Settings): readonly Finding[] {
  const [record, letter] = [topic.settings, settings].map((of) => numberOf(of, 'max.message.bytes') ?? 0)
  if (record === undefined || letter === undefined) return []
  const needed = letterBytesMax(record)
  if (letter >= needed) return []
  return [
    warning(
      'dead letters',
      `'${name}' takes ${letter} bytes and '${topic.name}' ${record}: the letter of a large job is written in parts, which other programs cannot read`,
      `kafka-configs.sh --alter --topic ${name} --add-config max.message.bytes=${needed}`,
    ),
  ]
}
