import { decodeProgress, type RetryState } from './commit-metadata.ts'
import type { Admin } from './driver.ts'
import { countOf, type OffsetRange } from './offset-ranges.ts'
import { isFor, offsetsOf } from './offsets.ts'
import type { KafkaOptions } from './options.ts'
import { nameOf, type PartitionName } from './record.ts'
import { findJobTopics } from './topics.ts'

export interface GroupPlaceParts extends Pick<KafkaOptions, 'group' | 'prefix' | 'desk' | 'isolation' | 'from'> {
  /** Topics that this process has used. */
  readonly topics: Iterable<string>
}

/** One partition as a group sees it: what the log has of it, and what the group last said of it. */
export interface GroupPlace extends PartitionName {
  /** Null where the topic was deleted meanwhile. */
  readonly topicId: string | null
  readonly start: number
  /** With `read_committed`, where the first open transaction begins. */
  readonly end: number
  /** The first offset that is not settled. */
  readonly position: number
  /** At or above the position. */
  readonly finished: readonly OffsetRange[]
  /** Of records that were started and are not settled, as far as the commit has told of them. */
  readonly retryStates: ReadonlyMap<number, RetryState>
}

export interface GroupPlaces {
  /** The topics of jobs that concern the group. */
  readonly jobs: readonly string[]
  readonly places: readonly GroupPlace[]
}

/** All partitions of the group's topics, or of one of them. A topic that is not there has none. */
export async function placesOf(admin: Admin, parts: GroupPlaceParts, only?: string): Promise<GroupPlaces> {
  const known = only === undefined ? parts.topics : [...parts.topics, only]
  const { committed, jobs: all } = await findJobTopics(admin, parts, known)
  const jobs = only === undefined ? all : all.filter((topic) => topic === only)
  if (jobs.length === 0) return { jobs, places: [] }
  const { topics: found } = await admin.metadata({ topics: [...jobs], forceUpdate: true })
  const names = jobs.flatMap((topic) =>
    Array.from({ length: found.get(topic)?.partitionsCount ?? 0 }, (_, partition) => ({ topic, partition })),
  )
  const [starts, ends] = await Promise.all([
    offsetsOf(admin, names, -2n),
    offsetsOf(admin, names, -1n, parts.isolation),
  ])
  const places = names.map((place): GroupPlace => {
    const start = Number(starts.get(nameOf(place)) ?? 0n)
    const end = Number(ends.get(nameOf(place)) ?? 0n)
    const known = committed.get(nameOf(place))
    const topicId = found.get(place.topic)?.id
    const isKnown = known !== undefined && isFor(known, topicId)
    // With from=latest, a group that has committed nothing does not read the records that are already there.
    const first = known === undefined && parts.from === 'latest' ? end : start
    const position = isKnown ? Number(known.offset) : first
    const { finished, retryStates } = decodeProgress(position, isKnown ? known.metadata : null)
    const progress = { position, finished: [...finished], retryStates: new Map(retryStates) }
    return { ...place, topicId: topicId ?? null, start, end, ...progress }
  })
  return { jobs, places }
}

/** Records of it that are not settled. */
export function unsettledIn({ end, position, finished }: GroupPlace): number {
  return Math.max(0, end - position - countOf(finished))
}

/** Whether a record that was started before waits for its time, runs as far as is known, or may run again. */
export function phaseOf({ starts, dueMs }: RetryState, nowMs: number): 'delayed' | 'started' | 'due' {
  if (dueMs > nowMs) return 'delayed'
  return dueMs === 0 && starts > 0 ? 'started' : 'due'
}
