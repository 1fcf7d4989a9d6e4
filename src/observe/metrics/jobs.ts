import type { Counter } from 'prom-client'
import type { JobFacts, MillEvents } from '../../events.ts'
import { Moment } from '../../time/clock.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { ATTEMPTS_BUCKETS, METRIC_NAMES, SECONDS_BUCKETS } from './names.ts'
import { type BucketCounts, histogramByType } from './prometheus-histogram.ts'

/** The meters of one type, found by one look-up. */
interface TypeMeters {
  readonly count: StatusCounts
  readonly duration: BucketCounts
  readonly attempts: BucketCounts
  readonly wait: BucketCounts
}

function typeMeters(parts: MetricParts, statuses: Statuses): (type: string) => TypeMeters {
  const histogram = (name: string, help: string, buckets: readonly number[]) =>
    histogramByType(parts, { name: parts.prefix + name, help, buckets })
  const duration = histogram(METRIC_NAMES.jobDuration, 'Job processing duration', SECONDS_BUCKETS)
  const attempts = histogram(METRIC_NAMES.jobAttempts, 'Attempts that a job took until it ended', ATTEMPTS_BUCKETS)
  const wait = histogram(METRIC_NAMES.queueWaitTime, 'From when a job was due to its first start', SECONDS_BUCKETS)
  const known = new Map<string, TypeMeters>()
  return (type) => {
    const found = known.get(type)
    if (found !== undefined) return found
    const meters = {
      count: statuses.of(type),
      duration: duration.of(type),
      attempts: attempts.of(type),
      wait: wait.of(type),
    }
    known.set(type, meters)
    return meters
  }
}

/** Counts attempts and their outcomes, and measures how long they wait and run. Releases are not counted. */
export function measureJobs(parts: MetricParts): Instrument {
  const { events, clock } = parts
  const statuses = countStatuses(parts)
  const of = typeMeters(parts, statuses)
  const now = new Moment(() => clock.nowMs())
  const onStarted = ({ job, attempt }: MillEvents['job.started']): void => {
    const meters = of(job.type)
    meters.count.started += 1
    // A retry waits for its backoff, which says nothing about the queue.
    if (attempt === 1) meters.wait.observe(waitedMs(job, now.ms) / 1_000)
  }
  /** The reaper ends the attempt of a dead worker: failed, with an unknown duration. */
  const countEnd = (meters: TypeMeters, { attempt, outcome }: MillEvents['lease.reaped']): void => {
    switch (outcome.kind) {
      case 'complete':
        meters.count.completed += 1
        break
      case 'retry':
      case 'dead':
        meters.count.failed += 1
        if (outcome.kind === 'retry') meters.count.retried += 1
        else meters.count.dead += 1
        break
      case 'release':
        return
      default:
        outcome satisfies never
    }
    if (outcome.kind !== 'retry') meters.attempts.observe(attempt)
  }
  const onSettled = (event: MillEvents['job.settled']): void => {
    const meters = of(event.job.type)
    countEnd(meters, event)
    if (event.outcome.kind !== 'release') meters.duration.observe(event.durationMs / 1_000)
  }
  const detach = events.attach({
    // Shows the types of a worker at 0: a series that starts at 1 hides its first event from `rate`.
    'worker.started': ({ types }) => types.forEach(of),
    'job.started': onStarted,
    'job.settled': onSettled,
    'lease.reaped': (event) => countEnd(of(event.job.type), event),
  })
  return { collect: () => statuses.flush(), detach }
}

/** Another machine's clock may be ahead. */
function waitedMs({ createdAtMs, runAtMs }: JobFacts, nowMs: number): number {
  return Math.max(0, nowMs - Math.max(createdAtMs, runAtMs))
}

/** A failed attempt counts as `failed`, and also as `retried` or `dead`. */
const STATUSES = Object.freeze({
  started: { name: METRIC_NAMES.jobsStarted, help: 'Attempts started' },
  completed: { name: METRIC_NAMES.jobsCompleted, help: 'Jobs completed' },
  failed: { name: METRIC_NAMES.jobsFailed, help: 'Attempts failed, whether retried or not' },
  retried: { name: METRIC_NAMES.jobsRetried, help: 'Failed attempts that are retried' },
  dead: { name: METRIC_NAMES.jobsDead, help: 'Jobs that became dead letters' },
})
type Status = keyof typeof STATUSES

/** Of one type. Counting costs an addition; the registry, which costs much more, is updated at a scrape. */
type StatusCounts = Record<Status, number>

interface Statuses {
  of(type: string): StatusCounts
  /** Adds what was counted since the last call to the registry. */
  flush(): void
}

/** Each status has its own counter, and a label of the total. */
function countStatuses({ prom, registry, prefix }: Pick<MetricParts, 'prom' | 'registry' | 'prefix'>): Statuses {
  const registers = [registry]
  const counter = (
    name: string,
    help: string,
    labelNames: readonly ('type' | 'status')[],
  ): Counter<'type' | 'status'> => new prom.Counter({ name: prefix + name, help, labelNames, registers })
  const total = counter(METRIC_NAMES.jobsTotal, 'Total jobs processed', ['type', 'status'])
  // The keys of the table are the statuses.
  const each = (Object.keys(STATUSES) as Status[]).map((status) => {
    const { name, help } = STATUSES[status]
    return { status, own: counter(name, help, ['type']) }
  })
  const counts = new Map<string, StatusCounts>()
  const flushType = (type: string, counted: StatusCounts): void => {
    for (const { status, own } of each) {
      own.inc({ type }, counted[status])
      total.inc({ type, status }, counted[status])
      counted[status] = 0
    }
  }
  return {
    of(type) {
      const found = counts.get(type)
      if (found !== undefined) return found
      const fresh = { started: 0, completed: 0, failed: 0, retried: 0, dead: 0 }
      counts.set(type, fresh)
      return fresh
    },
    flush() {
      for (const [type, counted] of counts) flushType(type, counted)
    },
  }
}
