import type { Counts, TypeCounts } from '../../engine/engine.ts'
import type { Admin } from './driver.ts'
import { nameOf, type PartitionName } from './holding.ts'
import { isFor, offsetsOf } from './offsets.ts'
import type { KafkaOptions } from './options.ts'
import { decodeProgress } from './progress.ts'
import { countOf } from './runs.ts'
import { lookUpTopics } from './used-topics.ts'

export interface CountParts extends Pick<KafkaOptions, 'group' | 'prefix' | 'desk' | 'isolation'> {
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
  const { committed, jobs } = await lookUpTopics(admin, parts, parts.topics)
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
      addPartition(total, { ...span, ...(isKnown ? known : { offset: span.start, metadata: null }), nowMs })
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
  const { finished, trials } = decodeProgress(Number(place.offset), place.metadata)
  const finishedAbove = countOf(finished)
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
