import type { Counts, TypeCounts } from '../../engine/engine.ts'
import type { TopicLag } from '../../engine/open.ts'
import { decodeProgress } from './commit-metadata.ts'
import type { Admin } from './driver.ts'
import { countOf } from './offset-ranges.ts'
import { type Committed, committedOf, isFor, offsetsOf, topicIdsOf } from './offsets.ts'
import type { KafkaOptions } from './options.ts'
import { nameOf, type PartitionName } from './record.ts'
import { findJobTopics } from './topics.ts'

export interface CountParts extends Pick<KafkaOptions, 'group' | 'prefix' | 'desk' | 'isolation' | 'from'> {
  /** Topics that this process has used. */
  readonly topics: Iterable<string>
  readonly nowMs: number
  /** By topic of jobs: how many of the group's have died in all, and how many of those are dead letters still. */
  tally(topics: readonly string[]): Promise<ReadonlyMap<string, { readonly died: number; readonly dead: number }>>
}

/**
 * Jobs of the group by topic, from the log and the commits: what was settled is what the commits have passed and the log
 * still has. Records that were compacted away or aborted, and marks of transactions, count as completed.
 */
export async function countJobs(admin: Admin, parts: CountParts): Promise<Counts> {
  const { prefix, nowMs } = parts
  const { committed, jobs } = await findJobTopics(admin, parts, parts.topics)
  if (jobs.length === 0) return {}
  const { topics: found } = await admin.metadata({ topics: [...jobs], forceUpdate: true })
  const partitionsOf = (topic: string): readonly PartitionName[] =>
    Array.from({ length: found.get(topic)?.partitionsCount ?? 0 }, (_, partition) => ({ topic, partition }))
  const all = jobs.flatMap(partitionsOf)
  const [starts, ends, letters] = await Promise.all([
    offsetsOf(admin, all, -2n),
    offsetsOf(admin, all, -1n, parts.isolation),
    parts.tally(jobs),
  ])
  const counts: Record<string, TypeCounts> = {}
  for (const topic of jobs) {
    const { died, dead } = letters.get(topic) ?? { died: 0, dead: 0 }
    const total = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead }
    for (const place of partitionsOf(topic)) {
      const span = { start: starts.get(nameOf(place)) ?? 0n, end: ends.get(nameOf(place)) ?? 0n }
      const known = committed.get(nameOf(place))
      const isKnown = known !== undefined && isFor(known, found.get(topic)?.id)
      // With from=latest, a group that has committed nothing does not read the records that are already there.
      const first = known === undefined && parts.from === 'latest' ? span.end : span.start
      addPartition(total, { ...span, ...(isKnown ? known : { offset: first, metadata: null }), nowMs })
    }
    counts[topic.slice(prefix.length)] = { ...total, completed: Math.max(0, total.completed - died) }
  }
  return counts
}

function addPartition(
  total: { ready: number; delayed: number; inProgress: number; completed: number },
  place: {
    readonly start: bigint
    readonly end: bigint
    readonly offset: bigint
    readonly metadata: string | null
    readonly nowMs: number
  },
): void {
  const { finished, retryStates } = decodeProgress(Number(place.offset), place.metadata)
  const finishedAbove = countOf(finished)
  let [delayed, inProgress] = [0, 0]
  for (const [, { starts, dueMs }] of retryStates) {
    if (dueMs > place.nowMs) delayed += 1
    else if (dueMs === 0 && starts > 0) inProgress += 1
  }
  const open = Math.max(0, Number(place.end - place.offset) - finishedAbove)
  total.delayed += delayed
  total.inProgress += inProgress
  total.ready += Math.max(0, open - delayed - inProgress)
  total.completed += Math.max(0, Number(place.offset - place.start)) + finishedAbove
}

/** Lag: the end of each partition less what the group has committed, by topic. */
export async function lagsOf(admin: Admin, groups: readonly string[], nowMs: number): Promise<readonly TopicLag[]> {
  const existing = new Set(await admin.listTopics())
  const lags = await Promise.all(groups.map((group) => lagsOfGroup(admin, group, existing, nowMs)))
  return lags.flat()
}

async function lagsOfGroup(
  admin: Admin,
  group: string,
  existing: ReadonlySet<string>,
  nowMs: number,
): Promise<readonly TopicLag[]> {
  const committed = [...(await committedOf(admin, group)).values()].filter(({ topic }) => existing.has(topic))
  const [ends, ids] = await Promise.all([
    offsetsOf(admin, committed, -1n),
    topicIdsOf(
      admin,
      committed.map(({ topic }) => topic),
    ),
  ])
  // What was committed for a topic that was deleted says nothing about the one that has its name now.
  const nextOf = (place: (typeof committed)[number]): bigint => (isFor(place, ids.get(place.topic)) ? place.offset : 0n)
  return [...Map.groupBy(committed, ({ topic }) => topic)].map(([topic, places]) => ({
    group,
    topic,
    lag: places.reduce((sum, place) => sum + Math.max(0, Number((ends.get(nameOf(place)) ?? 0n) - nextOf(place))), 0),
    delayed: places.reduce((sum, place) => sum + delayedIn(place, nowMs), 0),
  }))
}

/** Records that wait for a retry, as far as its worker has committed it. */
function delayedIn({ offset, metadata }: Committed, nowMs: number): number {
  const { retryStates } = decodeProgress(Number(offset), metadata)
  return [...retryStates].filter(([, { dueMs }]) => dueMs > nowMs).length
}
