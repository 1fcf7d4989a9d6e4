/** Document D's alert rules over one look at everything. The same rules stand as PromQL in examples/monitoring/prometheus. */
import type { Events, MillEvents } from '../../events.ts'
import { isMissing, isQuiet, isStopTooLong, type WatchedWorker } from './conditions.ts'
import { type LagLimits, lagSeverity, type Severity } from './lag.ts'
import type { GroupLag, PendingLetters, Reading } from './watch.ts'

/** Each alarm with what it is raised about. */
export const ALARMS = Object.freeze({
  WorkerHeartbeatMissing: { severity: 'CRITICAL', about: 'workers' },
  WorkerAbsent: { severity: 'CRITICAL', about: 'workers' },
  WorkerStuckProcessing: { severity: 'WARNING', about: 'workers' },
  WorkerShutdownOverdue: { severity: 'WARNING', about: 'workers' },
  WorkerPresenceUnreachable: { severity: 'CRITICAL', about: 'presence' },
  DLQFinancial: { severity: 'CRITICAL', about: 'pending' },
  DLQNonFinancial: { severity: 'WARNING', about: 'pending' },
  ConsumerLagCritical: { severity: 'CRITICAL', about: 'lags' },
  ConsumerLagWarning: { severity: 'WARNING', about: 'lags' },
} as const)

export type AlarmName = keyof typeof ALARMS

export interface Alarm {
  readonly alarm: AlarmName
  readonly severity: Severity
  readonly labels: Readonly<Record<string, string>>
  readonly text: string
}

export interface AlarmRules {
  /** Null for a topic that may fall behind as far as it likes. */
  readonly lagLimits: (topic: string) => LagLimits | null
  /** Whether money is at stake; given the topic of the dead letters. */
  readonly isFinancial: (dlqTopic: string) => boolean
  /** Types of which at least one worker must be known. None unless told. */
  readonly expected?: readonly string[]
}

/** Every rule that holds now. What could not be read raises no alarm, except that the workers could not. */
export function evaluateAlarms({ atMs, workers, lags, pending }: Reading, rules: AlarmRules): readonly Alarm[] {
  // X170: a store that is away says nothing about workers, so it is one alarm and not one for each of them.
  const aboutWorkers = workers.ok
    ? [...workers.value.flatMap((one) => workerAlarms(one, atMs)), ...absent(workers.value, rules.expected ?? [])]
    : [alarm('WorkerPresenceUnreachable', {}, `heartbeats cannot be read: ${workers.error}`)]
  const aboutLags = lags.ok ? lags.value.flatMap((one) => lagAlarms(one, rules)) : []
  const aboutLetters = pending.ok ? pending.value.flatMap((one) => pendingAlarms(one, rules)) : []
  return [...aboutWorkers, ...aboutLags, ...aboutLetters]
}

function alarm(name: AlarmName, labels: Alarm['labels'], text: string): Alarm {
  return { alarm: name, severity: ALARMS[name].severity, labels, text }
}

function workerAlarms(watched: WatchedWorker, nowMs: number): readonly Alarm[] {
  const { worker, instance, beat, retrying, seenAtMs } = watched
  const labels = { worker, worker_instance: instance }
  if (isMissing(watched, nowMs)) {
    const seconds = Math.floor((nowMs - seenAtMs) / 1_000)
    return [alarm('WorkerHeartbeatMissing', labels, `${instance} was last heard ${seconds} s ago`)]
  }
  if (beat === null) return []
  if (isStopTooLong(beat, nowMs)) {
    return [alarm('WorkerShutdownOverdue', labels, `${instance} has been stopping for more than 2 min`)]
  }
  const isStuck = beat.status === 'RUNNING' && retrying === 0 && (beat.lag ?? 0) > 0 && isQuiet(watched, nowMs)
  if (!isStuck) return []
  return [alarm('WorkerStuckProcessing', labels, `${instance} lives but handles none of ${beat.lag} records`)]
}

/** X157: a worker that was never heard has no heartbeat that could be too old. */
function absent(workers: readonly WatchedWorker[], expected: readonly string[]): readonly Alarm[] {
  const known = new Set(workers.map(({ worker }) => worker))
  return expected
    .filter((worker) => !known.has(worker))
    .map((worker) => alarm('WorkerAbsent', { worker }, `no ${worker} has been heard for a day, or ever`))
}

function lagAlarms({ group, topic, lag }: GroupLag, { lagLimits }: AlarmRules): readonly Alarm[] {
  const limits = lagLimits(topic)
  const severity = limits === null ? null : lagSeverity(lag, limits)
  if (severity === null) return []
  const name = severity === 'CRITICAL' ? 'ConsumerLagCritical' : 'ConsumerLagWarning'
  return [alarm(name, { group, topic }, `${group} is ${lag} records behind on ${topic}`)]
}

function pendingAlarms({ topic, count }: PendingLetters, rules: AlarmRules): readonly Alarm[] {
  return count > 0 ? [dlqAlarm(topic, rules.isFinancial(topic), `dead letters that wait in ${topic}: ${count}`)] : []
}

function dlqAlarm(topic: string, isFinancial: boolean, text: string): Alarm {
  return isFinancial ? alarm('DLQFinancial', { topic }, text) : alarm('DLQNonFinancial', { topic }, text)
}

export interface ArrivalOptions {
  /** The topic of the dead letters of a type; null for a type that is on no topic. */
  readonly dlqTopicOf: (type: string) => string | null
  readonly isFinancial: (dlqTopic: string) => boolean
  /** May fail: the work goes on. */
  readonly send: (alarm: Alarm) => unknown
}

/**
 * One alarm for every dead letter as it arrives, by the worker that wrote it: no need to wait for the next look. Returns
 * the detacher.
 *
 * @example
 * attachArrivalAlarms(mill.events, { dlqTopicOf: (type) => `${type}.dlq`, isFinancial, send: (alarm) => page(alarm) })
 */
export function attachArrivalAlarms(events: Events, options: ArrivalOptions): () => void {
  const onEnded = ({ job, outcome }: MillEvents['lease.reaped']): unknown => {
    const topic = outcome.kind === 'dead' ? options.dlqTopicOf(job.type) : null
    if (topic === null) return
    return options.send(
      dlqAlarm(topic, options.isFinancial(topic), `job ${job.id} has become a dead letter in ${topic}`),
    )
  }
  const detachers = [events.on('job.settled', onEnded), events.on('lease.reaped', onEnded)]
  return () => {
    for (const detach of detachers) detach()
  }
}
