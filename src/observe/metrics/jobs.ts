import type { JobFacts, MillEvents } from '../../events.ts'
import { Moment } from '../../time/clock.ts'
import { histogramByType, type Observations } from './histogram.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { ATTEMPTS_BUCKETS, METRIC_NAMES, SECONDS_BUCKETS } from './names.ts'
import { countStatuses, type StatusCounts, type Statuses } from './statuses.ts'

/** What is counted of one type, found by one look-up. */
interface TypeMeters {
  readonly count: StatusCounts
  readonly duration: Observations
  readonly attempts: Observations
  readonly wait: Observations
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

/** Counts attempts and how they end, and how long they wait and run. A release is no end: it is not counted. */
export function measureJobs(parts: MetricParts): Instrument {
  const { events, clock } = parts
  const statuses = countStatuses(parts)
  const of = typeMeters(parts, statuses)
  const now = new Moment(() => clock.nowMs())
  const onStarted = ({ job, attempt }: MillEvents['job.started']): void => {
    const meters = of(job.type)
    meters.count.started += 1
    // X084: a retry waits for its backoff, which says nothing about the queue.
    if (attempt === 1) meters.wait.observe(waitedMs(job, now.ms) / 1_000)
  }
  /** A start whose worker died ends with the reaper: failed, its duration unknown. */
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
  const detachers = [
    events.on('worker.started', ({ types }) => types.forEach(of)),
    events.on('job.started', onStarted),
    events.on('job.settled', onSettled),
    events.on('lease.reaped', (event) => countEnd(of(event.job.type), event)),
  ]
  return {
    // A type that a worker has is shown at 0 before its first job: a series that begins at 1 hides it from `rate`.
    collect: () => statuses.tell(),
    detach() {
      for (const detach of detachers) detach()
    },
  }
}

/** Another machine's clock may be ahead of ours. */
function waitedMs({ createdAtMs, runAtMs }: JobFacts, nowMs: number): number {
  return Math.max(0, nowMs - Math.max(createdAtMs, runAtMs))
}
