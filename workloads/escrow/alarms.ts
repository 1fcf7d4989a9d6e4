/** The alert rules of the escrow workers over one reading. examples/monitoring/prometheus has the same rules in PromQL. */
import type { TopicLag } from '../../src/engine/open.ts'
import type { Events, MillEvents, Severity } from '../../src/events.ts'
import type { AlertRule, AlertSubject } from '../../src/observe/alerts/rule.ts'
import { runbookEntry } from '../../src/observe/alerts/runbook.ts'
import { type LagLimits, lagSeverity, type PendingLetters } from '../../src/observe/lag.ts'
import { isMissing, isQuiet, isStopOverdue } from '../../src/observe/workers.ts'
import type { WatchedWorker } from './conditions.ts'
import type { Reading } from './watch.ts'

/** Each alarm, the part of a reading it is about, and for how long it must hold. */
export const ALARMS = Object.freeze({
  WorkerHeartbeatMissing: { severity: 'critical', about: 'workers' },
  // Workers that are starting have not sent a heartbeat yet.
  WorkerAbsent: { severity: 'critical', about: 'workers', for: '1m' },
  WorkerStuckProcessing: { severity: 'warning', about: 'workers' },
  WorkerShutdownOverdue: { severity: 'warning', about: 'workers' },
  WorkerPresenceUnreachable: { severity: 'critical', about: 'presence' },
  DLQFinancial: { severity: 'critical', about: 'pending' },
  DLQNonFinancial: { severity: 'warning', about: 'pending' },
  ConsumerLagCritical: { severity: 'critical', about: 'lags' },
  ConsumerLagWarning: { severity: 'warning', about: 'lags' },
} as const)

export type AlarmName = keyof typeof ALARMS

export interface Alarm {
  readonly alarm: AlarmName
  readonly severity: Severity
  readonly labels: Readonly<Record<string, string>>
  readonly text: string
  /** What to do about it: the entry of the runbook. */
  readonly runbook: string
}

export interface AlarmRules {
  /** Null for a topic without limits. */
  readonly lagLimits: (topic: string) => LagLimits | null
  /** Whether letters of this dead-letter topic involve money. */
  readonly isFinancial: (dlqTopic: string) => boolean
  /** Types that need at least one worker; default: none. */
  readonly expected?: readonly string[]
}

/** Every alarm that holds now. A source that cannot be read raises none, except `WorkerPresenceUnreachable`. */
export function evaluateAlarms({ atMs, workers, lags, pending }: Reading, rules: AlarmRules): readonly Alarm[] {
  // An unreachable store says nothing about workers: one alarm, not one per worker.
  const aboutWorkers = workers.ok
    ? [...workers.value.flatMap((one) => workerAlarms(one, atMs)), ...absent(workers.value, rules.expected ?? [])]
    : [alarm('WorkerPresenceUnreachable', {}, `heartbeats cannot be read: ${workers.error}`)]
  const aboutLags = lags.ok ? lags.value.flatMap((one) => lagAlarms(one, rules)) : []
  const aboutLetters = pending.ok ? pending.value.flatMap((one) => pendingAlarms(one, rules)) : []
  return [...aboutWorkers, ...aboutLags, ...aboutLetters]
}

function alarm(name: AlarmName, labels: Alarm['labels'], text: string): Alarm {
  return { alarm: name, severity: ALARMS[name].severity, labels, text, runbook: runbookEntry(name) }
}

function workerAlarms(watched: WatchedWorker, nowMs: number): readonly Alarm[] {
  const { worker, instance, beat, retrying, seenAtMs } = watched
  const labels = { worker, worker_instance: instance }
  if (isMissing(watched, nowMs)) {
    const seconds = Math.floor((nowMs - seenAtMs) / 1_000)
    return [alarm('WorkerHeartbeatMissing', labels, `${instance} was last heard ${seconds} s ago`)]
  }
  if (beat === null) return []
  if (isStopOverdue(beat, nowMs)) {
    return [alarm('WorkerShutdownOverdue', labels, `${instance} has been stopping for more than 2 min`)]
  }
  const isStuck = beat.status === 'RUNNING' && retrying === 0 && (beat.lag ?? 0) > 0 && isQuiet(watched, nowMs)
  if (!isStuck) return []
  return [alarm('WorkerStuckProcessing', labels, `${instance} is running but handles none of ${beat.lag} records`)]
}

/** A worker that never sent a heartbeat has none that could be too old. */
function absent(workers: readonly WatchedWorker[], expected: readonly string[]): readonly Alarm[] {
  const known = new Set(workers.map(({ worker }) => worker))
  return expected
    .filter((worker) => !known.has(worker))
    .map((worker) => alarm('WorkerAbsent', { worker }, `no ${worker} has sent a heartbeat for a day, or ever`))
}

function lagAlarms({ group, topic, lag }: TopicLag, { lagLimits }: AlarmRules): readonly Alarm[] {
  const limits = lagLimits(topic)
  const severity = limits === null ? null : lagSeverity(lag, limits)
  if (severity === null) return []
  const name = severity === 'critical' ? 'ConsumerLagCritical' : 'ConsumerLagWarning'
  return [alarm(name, { group, topic }, `${group} is ${lag} records behind on ${topic}`)]
}

function pendingAlarms({ topic, count }: PendingLetters, rules: AlarmRules): readonly Alarm[] {
  return count > 0 ? [dlqAlarm(topic, rules.isFinancial(topic), textOfPending(topic, count))] : []
}

function textOfPending(topic: string, count: number): string {
  return `${topic} has ${count} unresolved dead ${count === 1 ? 'letter' : 'letters'}`
}

function dlqAlarm(topic: string, isFinancial: boolean, text: string): Alarm {
  return isFinancial ? alarm('DLQFinancial', { topic }, text) : alarm('DLQNonFinancial', { topic }, text)
}

export interface ArrivalOptions {
  /** The dead-letter topic of a type; null for a type without a topic. */
  readonly dlqTopicOf: (type: string) => string | null
  readonly isFinancial: (dlqTopic: string) => boolean
  /** Errors are reported and do not affect the work. */
  readonly send: (alarm: Alarm) => unknown
}

/**
 * Sends an alarm for every dead letter as soon as a worker writes it, without waiting for the next reading. Returns the
 * detacher.
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
  return events.attach({ 'job.settled': onEnded, 'lease.reaped': onEnded })
}

/**
 * The alarms of `evaluateAlarms` as rules for `startAlerting`, over what a `Watch` reads: workers, lags and dead letters
 * by topic.
 *
 * @example
 * const alerting = startAlerting(mill, { rules: watchRules({ lagLimits, isFinancial }), watch, every: '15s' })
 */
export function watchRules(rules: AlarmRules): readonly AlertRule<Reading>[] {
  // All rules share one reading.
  const evaluated = new WeakMap<Reading, readonly Alarm[]>()
  const alarmsOf = (reading: Reading): readonly Alarm[] => {
    const alarms = evaluated.get(reading) ?? evaluateAlarms(reading, rules)
    evaluated.set(reading, alarms)
    return alarms
  }
  // The keys of the table are the names of the alarms.
  return (Object.keys(ALARMS) as AlarmName[]).map((name) => {
    const { severity, about, ...held } = ALARMS[name]
    return {
      name,
      severity,
      ...held,
      severityLabel: severity.toUpperCase(),
      about: SUBJECTS[about],
      runbook: runbookEntry(name),
      evaluate({ reading }) {
        if (reading === null || !isKnown(name, reading)) return null
        const found = alarmsOf(reading).filter(({ alarm }) => alarm === name)
        return found.map(({ labels, text }) => ({ labels, text, ...measuredLag(name, labels, reading, rules) }))
      },
    }
  })
}

/** How far behind a group is, and from where on that is an alarm; nulls for alarms about anything else. */
function measuredLag(name: AlarmName, { group, topic }: Alarm['labels'], { lags }: Reading, rules: AlarmRules) {
  const limits = topic === undefined || ALARMS[name].about !== 'lags' ? null : rules.lagLimits(topic)
  if (limits === null || !lags.ok) return { value: null, threshold: null }
  const found = lags.value.find((lag) => lag.group === group && lag.topic === topic)
  return { value: found?.lag ?? null, threshold: name === 'ConsumerLagCritical' ? limits.critical : limits.warning }
}

const SUBJECTS = {
  workers: 'workers',
  presence: 'workers',
  pending: 'dead-letters',
  lags: 'topics',
} as const satisfies Readonly<Record<(typeof ALARMS)[AlarmName]['about'], AlertSubject>>

/** An unreadable source neither raises nor resolves an alert, except the one that says so. */
function isKnown(name: AlarmName, reading: Reading): boolean {
  const { about } = ALARMS[name]
  return about === 'presence' || reading[about].ok
}
