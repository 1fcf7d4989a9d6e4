import { DLQ_SUFFIX } from './dead-letters/record.ts'
import type { Admin } from './driver.ts'
import { committedOf } from './offsets.ts'
import { archiveTopicOf, type KafkaOptions, statesTopicOf } from './options.ts'

/**
 * The topics of jobs that are there and concern the group. With a prefix all topics that have it are ours; without one,
 * those that the group has committed or that are known.
 */
export function usedTopics(
  existing: ReadonlySet<string>,
  {
    prefix,
    desk,
    known,
    committed,
  }: Pick<KafkaOptions, 'prefix' | 'desk'> & {
    readonly known: Iterable<string>
    readonly committed: Iterable<{ readonly topic: string }>
  },
): readonly string[] {
  const prefixed = prefix === '' ? [] : [...existing].filter((topic) => topic.startsWith(prefix))
  const used = new Set([...known, ...prefixed, ...[...committed].map(({ topic }) => topic)])
  const ours = [statesTopicOf({ desk }), archiveTopicOf({ desk })]
  const isForJobs = (topic: string): boolean => !topic.endsWith(DLQ_SUFFIX) && !ours.includes(topic)
  return [...used].filter((topic) => existing.has(topic) && topic.startsWith(prefix) && isForJobs(topic))
}

/** What the group has committed, and the topics of jobs that concern it, as they are now. */
export async function lookUpTopics(
  admin: Admin,
  options: Pick<KafkaOptions, 'group' | 'prefix' | 'desk'>,
  known: Iterable<string>,
) {
  const [committed, existing] = await Promise.all([committedOf(admin, options.group), admin.listTopics()])
  return { committed, jobs: usedTopics(new Set(existing), { ...options, known, committed: committed.values() }) }
}
