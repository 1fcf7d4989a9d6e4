import type { Counts, TypeCounts } from '../../engine/engine.ts'
import type { TopicLag } from '../../engine/open.ts'
import { decodeProgress } from './commit-metadata.ts'
import type { Admin } from './driver.ts'
import { type GroupPlace, type GroupPlaceParts, phaseOf, placesOf, unsettledIn } from './group-places.ts'
import { countOf } from './offset-ranges.ts'
import { type Committed, committedOf, isFor, offsetsOf, topicIdsOf } from './offsets.ts'
import { nameOf } from './record.ts'

export interface CountParts extends GroupPlaceParts {
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
  const { jobs, places } = await placesOf(admin, parts)
  if (jobs.length === 0) return {}
  const letters = await parts.tally(jobs)
  const counts: Record<string, TypeCounts> = {}
  for (const topic of jobs) {
    const { died, dead } = letters.get(topic) ?? { died: 0, dead: 0 }
    const total = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead }
    for (const place of places) if (place.topic === topic) addPlace(total, place, nowMs)
    counts[topic.slice(prefix.length)] = { ...total, completed: Math.max(0, total.completed - died) }
  }
  return counts
}

function addPlace(
  total: { ready: number; delayed: number; inProgress: number; completed: number },
  place: GroupPlace,
  nowMs: number,
): void {
  let [delayed, inProgress] = [0, 0]
  for (const retryState of place.retryStates.values()) {
    const phase = phaseOf(retryState, nowMs)
    if (phase === 'delayed') delayed += 1
    else if (phase === 'started') inProgress += 1
  }
  total.delayed += delayed
  total.inProgress += inProgress
  total.ready += Math.max(0, unsettledIn(place) - delayed - inProgress)
  total.completed += Math.max(0, place.position - place.start) + countOf(place.finished)
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
