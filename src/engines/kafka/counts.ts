import type { Counts, TypeCounts } from '../../engine/engine.ts'
import { DLQ_SUFFIX, dlqTopicOf } from './dead-letters/record.ts'
import type { Admin } from './driver.ts'
import { nameOf, type PartitionName } from './holding.ts'
import { committedOf, offsetsOf } from './offsets.ts'
import { decodeProgress } from './progress.ts'

/**
 * Jobs of the group by topic, from the log and the commits: what was settled is what the commits have passed and the log
 * still has. Records that were compacted away, and marks of transactions, count as completed.
 */
export async function countJobs(
  admin: Admin,
  options: {
    readonly group: string
    readonly prefix: string
    readonly topics: Iterable<string>
    readonly nowMs: number
  },
): Promise<Counts> {
  const { group, prefix, topics, nowMs } = options
  const committed = await committedOf(admin, group)
  const existing = new Set(await admin.listTopics())
  // With a prefix all topics that have it are ours; without one, those that the group or this process has used.
  const prefixed = prefix === '' ? [] : [...existing].filter((topic) => topic.startsWith(prefix))
  const used = new Set([...topics, ...prefixed, ...[...committed.values()].map(({ topic }) => topic)])
  const jobs = [...used].filter(
    (topic) => existing.has(topic) && topic.startsWith(prefix) && !topic.endsWith(DLQ_SUFFIX),
  )
  const letters = jobs.map(dlqTopicOf).filter((topic) => existing.has(topic))
  if (jobs.length === 0) return {}
  const { topics: found } = await admin.metadata({ topics: [...jobs, ...letters], forceUpdate: true })
  const partitionsOf = (topic: string): readonly PartitionName[] =>
    Array.from({ length: found.get(topic)?.partitionsCount ?? 0 }, (_, partition) => ({ topic, partition }))
  const all = [...jobs, ...letters].flatMap(partitionsOf)
  const [starts, ends] = await Promise.all([offsetsOf(admin, all, -2n), offsetsOf(admin, all, -1n)])
  const spanOf = (place: PartitionName): { readonly start: bigint; readonly end: bigint } => ({
    start: starts.get(nameOf(place)) ?? 0n,
    end: ends.get(nameOf(place)) ?? 0n,
  })
  const counts: Record<string, TypeCounts> = {}
  for (const topic of jobs) {
    const dead = partitionsOf(dlqTopicOf(topic)).reduce((sum, place) => sum + lengthOf(spanOf(place)), 0)
    const total = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead }
    for (const place of partitionsOf(topic)) {
      const span = spanOf(place)
      const commit = committed.get(nameOf(place)) ?? { offset: span.start, metadata: null }
      addPartition(total, { ...span, ...commit, nowMs })
    }
    counts[topic.slice(prefix.length)] = { ...total, completed: Math.max(0, total.completed - dead) }
  }
  return counts
}

function lengthOf({ start, end }: { readonly start: bigint; readonly end: bigint }): number {
  return Number(end - start)
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
  const { finished, trials } = decodeProgress(place.offset, place.metadata)
  const finishedAbove = [...finished].length
  let [delayed, inProgress] = [0, 0]
  for (const [, { starts, dueMs }] of trials) {
    if (dueMs > place.nowMs) delayed += 1
    else if (dueMs === 0 && starts > 0) inProgress += 1
  }
  const open = Math.max(0, Number(place.end - place.offset) - finishedAbove)
  total.delayed += delayed
  total.inProgress += inProgress
  total.ready += Math.max(0, open - delayed - inProgress)
  total.completed += Math.max(0, Number(place.offset - place.start)) + finishedAbove
}
