import type { Counter, Histogram } from 'prom-client'
import type { JobFacts, MillEvents } from '../../events.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { ATTEMPTS_BUCKETS, METRIC_NAMES, SECONDS_BUCKETS } from './names.ts'

/** The meters of one type, looked up once: finding a child by its labels costs more than counting. */
interface TypeMeters {
  readonly started: Counter.Internal
  readonly completed: Counter.Internal
  readonly failed: Counter.Internal
  readonly retried: Counter.Internal
  readonly endedWell: Counter.Internal
  readonly endedBadly: Counter.Internal
  readonly duration: Histogram.Internal<'type'>
  readonly attempts: Histogram.Internal<'type'>
  readonly wait: Histogram.Internal<'type'>
}

function typeMeters({ prom, registry, prefix }: MetricParts): (type: string) => TypeMeters {
  const registers = [registry]
  const counter = (name: string, help: string) =>
    new prom.Counter({ name: prefix + name, help, labelNames: ['type'], registers })
  const histogram = (name: string, help: string, buckets: readonly number[]) =>
    new prom.Histogram({ name: prefix + name, help, labelNames: ['type'], buckets: [...buckets], registers })
  const total = new prom.Counter({
    name: prefix + METRIC_NAMES.jobsTotal,
    help: 'Total jobs processed',
    labelNames: ['type', 'status'],
    registers,
  })
  const started = counter(METRIC_NAMES.jobsStarted, 'Attempts started')
  const completed = counter(METRIC_NAMES.jobsCompleted, 'Jobs completed')
  const failed = counter(METRIC_NAMES.jobsFailed, 'Attempts failed, whether retried or the last')
  const retried = counter(METRIC_NAMES.jobsRetried, 'Failed attempts after which another one follows')
  const duration = histogram(METRIC_NAMES.jobDuration, 'Job processing duration', SECONDS_BUCKETS)
  const attempts = histogram(METRIC_NAMES.jobAttempts, 'Attempts that a job took until it ended', ATTEMPTS_BUCKETS)
  const wait = histogram(METRIC_NAMES.queueWaitTime, 'From when a job was due to its first start', SECONDS_BUCKETS)
  const known = new Map<string, TypeMeters>()
  return (type) => {
    const found = known.get(type)
    if (found !== undefined) return found
    const meters = {
      started: started.labels(type),
      completed: completed.labels(type),
      failed: failed.labels(type),
      retried: retried.labels(type),
      endedWell: total.labels(type, 'completed'),
      endedBadly: total.labels(type, 'failed'),
      duration: duration.labels(type),
      attempts: attempts.labels(type),
      wait: wait.labels(type),
    }
    // A series that begins at 1 hides its first event from `rate`, so all begin at 0.
    const { completed: well, failed: badly, retried: again } = meters
    for (const one of [meters.started, well, badly, again, meters.endedWell, meters.endedBadly]) one.inc(0)
    known.set(type, meters)
    return meters
  }
}

/** Counts attempts and how they end, and how long they wait and run. A release is no end: it is not counted. */
export function measureJobs(parts: MetricParts): Instrument {
  const { events, clock } = parts
  const of = typeMeters(parts)
  const onStarted = ({ job, attempt }: MillEvents['job.started']): void => {
    const meters = of(job.type)
    meters.started.inc()
    // X084: a retry waits for its backoff, which says nothing about the queue.
    if (attempt === 1) meters.wait.observe(waitedMs(job, clock.nowMs()) / 1_000)
  }
  /** A start whose worker died ends with the reaper: failed, its duration unknown. */
  const onEnded = ({ job, attempt, outcome }: MillEvents['lease.reaped']): void => {
    const meters = of(job.type)
    switch (outcome.kind) {
      case 'complete':
        meters.completed.inc()
        meters.endedWell.inc()
        break
      case 'retry':
      case 'dead':
        meters.failed.inc()
        meters.endedBadly.inc()
        if (outcome.kind === 'retry') meters.retried.inc()
        break
      case 'release':
        return
      default:
        outcome satisfies never
    }
    if (outcome.kind !== 'retry') meters.attempts.observe(attempt)
  }
  const onSettled = (event: MillEvents['job.settled']): void => {
    onEnded(event)
    if (event.outcome.kind !== 'release') of(event.job.type).duration.observe(event.durationMs / 1_000)
  }
  const detachers = [
    events.on('worker.started', ({ types }) => types.forEach(of)),
    events.on('job.started', onStarted),
    events.on('job.settled', onSettled),
    events.on('lease.reaped', onEnded),
  ]
  return {
    collect() {},
    detach() {
      for (const detach of detachers) detach()
    },
  }
}

/** Another machine's clock may be ahead of ours. */
function waitedMs({ createdAtMs, runAtMs }: JobFacts, nowMs: number): number {
  return Math.max(0, nowMs - Math.max(createdAtMs, runAtMs))
}
