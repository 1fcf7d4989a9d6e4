/** How far the group is behind, what it will never see, and whose clock is wrong. */
import type { DiagnoseOptions, Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import { decodeProgress } from '../commit-metadata.ts'
import { countOf } from '../offset-ranges.ts'
import { OVERDUE_MS, type PartitionView, type Survey, type TopicView } from './survey.ts'

/** Unless the operator says otherwise. */
const LAG_DEFAULT = Object.freeze({ warning: 1_000, critical: 10_000 })
/** Two clocks of one network differ by less. */
const CLOCK_TOLERANCE_MS = 5_000

/** The records between what is committed and the end, over all partitions. Without a commit, all that are there. */
export function lagOf({ partitions }: TopicView): number {
  return partitions.reduce((sum, partition) => sum + Number(partition.end - nextOf(partition)), 0)
}

function nextOf({ begin, end, committed }: PartitionView): bigint {
  const next = committed === null || committed.offset < begin ? begin : committed.offset
  return next > end ? end : next
}

/** Above a limit, not at it. `limits` by type. */
export function judgeLag(
  { jobs, group }: Survey,
  prefix: string,
  limits: NonNullable<DiagnoseOptions['lag']>,
): readonly Finding[] {
  const lags = jobs.map((topic) => ({ name: topic.name, lag: lagOf(topic) }))
  const behind = lags.flatMap(({ name, lag }): readonly Finding[] => {
    const limit = limits[name.slice(prefix.length)] ?? LAG_DEFAULT
    const judge = lag > limit.critical ? failure : warning
    if (lag <= Math.min(limit.warning, limit.critical)) return []
    const above = lag > limit.critical ? limit.critical : limit.warning
    return [
      judge(
        'lag',
        `'${group.name}' is ${plural(lag, 'record')} behind on '${name}', more than ${above}`,
        group.members.length === 0
          ? 'Start a worker.'
          : 'Start more workers (up to one per partition), or give them more concurrency; see the log for jobs that fail.',
      ),
    ]
  })
  if (behind.length > 0) return behind
  const sum = lags.reduce((total, { lag }) => total + lag, 0)
  return [ok('lag', `${plural(sum, 'record')} behind over ${plural(jobs.length, 'topic')}`)]
}

export function judgeOverdue({ jobs }: Survey): readonly Finding[] {
  const overdue = jobs
    .map((topic) => ({ name: topic.name, count: topic.partitions.reduce((sum, place) => sum + overdueOf(place), 0) }))
    .filter(({ count }) => count > 0)
  if (overdue.length === 0)
    return [ok('overdue jobs', `no record is unsettled for longer than ${formatAge(OVERDUE_MS)}`)]
  return overdue.map(({ name, count }) =>
    warning(
      'overdue jobs',
      `${plural(count, 'record')} of '${name}' unsettled for longer than ${formatAge(OVERDUE_MS)}`,
      'They wait for a worker, for the key or partition of one that is retried, or for their own retry; its log says which.',
    ),
  )
}

/** What was finished above the committed offset is settled, though not passed. */
function overdueOf(place: PartitionView): number {
  const next = nextOf(place)
  if (place.young <= next) return 0
  const { finished } = decodeProgress(Number(next), place.committed?.metadata ?? null)
  const done = countOf(finished, Number(place.young))
  return Math.max(0, Number(place.young - next) - done)
}

/** Retention, or a hand, has deleted what nobody had settled. */
export function judgeLost({ jobs }: Survey): readonly Finding[] {
  const lost = jobs
    .map(({ name, partitions }) => ({
      name,
      count: partitions.reduce(
        (sum, { begin, committed }) =>
          sum + (committed !== null && committed.offset < begin ? Number(begin - committed.offset) : 0),
        0,
      ),
    }))
    .filter(({ count }) => count > 0)
  if (lost.length === 0) return [ok('lost jobs', 'nothing was deleted before it was settled')]
  return lost.map(({ name, count }) =>
    failure(
      'lost jobs',
      `${plural(count, 'record')} of '${name}' deleted before the group had settled them`,
      'Raise retention.ms and retention.bytes of the topic above the longest time that work may stand still, and produce them again.',
    ),
  )
}

/** A broker tells no time; the records of a producer whose clock is ahead do. */
export function judgeClock({ jobs }: Survey, nowMs: number): Finding {
  const [furthest] = jobs
    .flatMap(({ name, partitions }) =>
      partitions.map(({ newestMs }) => ({ name, aheadMs: (newestMs ?? nowMs) - nowMs })),
    )
    .toSorted((left, right) => right.aheadMs - left.aheadMs)
  if (furthest === undefined || furthest.aheadMs <= CLOCK_TOLERANCE_MS)
    return ok('clock', 'no record is dated in the future')
  return warning(
    'clock',
    `a record of '${furthest.name}' is dated ${formatAge(furthest.aheadMs)} ahead of this machine: a clock is wrong, and retention goes by it`,
    'Synchronise producers, brokers and this machine with a time server.',
  )
}
