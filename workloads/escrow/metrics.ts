import type { Counter, Gauge } from 'prom-client'
import type { Events, MillEvents } from '../../src/events.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import type { MakeInstrument } from '../../src/observe/metrics/instrument.ts'
import { activeAtMs } from '../../src/observe/workers.ts'
import type { Reading, Watch } from './watch.ts'

/** The names of the escrow platform, as Micrometer writes them for Prometheus. Times are seconds. */
export const WATCH_METRIC_NAMES = Object.freeze({
  'kafka.consumer.lag': 'kafka_consumer_lag',
  'worker.heartbeat.timestamp': 'worker_heartbeat_timestamp',
  'worker.dlq.messages': 'worker_dlq_messages_total',
  'worker.dlq.replayed': 'worker_dlq_replayed_total',
  'worker.dlq.archived': 'worker_dlq_archived_total',
  'worker.retry.count': 'worker_retry_count_total',
  'worker.dlq.pending': 'worker_dlq_pending',
  'worker.last.message.timestamp': 'worker_last_message_timestamp',
  'worker.consumer.lag': 'worker_consumer_lag',
  'worker.retrying': 'worker_retrying',
  'worker.stopping.timestamp': 'worker_stopping_timestamp',
  'worker.presence.up': 'worker_presence_up',
})

export interface WatchMetricsOptions {
  /** Read at every scrape. One process is enough; the others report only their own work. */
  readonly watch?: Pick<Watch, 'read'>
  /** False: no heartbeats are kept, so it is not said that they cannot be read. Default: true. */
  readonly heartbeats?: boolean
  /** The dead-letter topic of a type; null for a type without a topic. */
  readonly dlqTopicOf: (type: string) => string | null
}

const WATCH_NAMES: OptionNames<WatchMetricsOptions> = { watch: true, heartbeats: true, dlqTopicOf: true }

export interface WatchMetrics {
  /** For `attachMetrics`. */
  readonly instrument: MakeInstrument
  /** Counts a replay; pass it to the desk of topics. Replays by a desk of the mill are counted without it. */
  onReplayed(dlqTopic: string): void
  /** Counts letters that were moved into the archive. */
  onArchived(dlqTopic: string, count: number): void
}

/** Limits the values of the label: anything else, and every class beyond these, is `other`. */
const CLASS_NAME = /^[A-Za-z_$][\w$.]{0,99}$/
const CLASSES_MAX = 100

/**
 * Metrics of the escrow workers, without a prefix: lags and dead letters by topic, heartbeats and retries by worker.
 *
 * @example
 * const escrow = watchMetrics({ watch, dlqTopicOf: (type) => `${type}.dlq` })
 * const metrics = await attachMetrics(mill, { instruments: [escrow.instrument] })
 */
export function watchMetrics(options: WatchMetricsOptions): WatchMetrics {
  refuseUnknown(options, WATCH_NAMES, 'watchMetrics')
  let replayed: Counter | null = null
  let archived: Counter | null = null
  return {
    instrument({ prom, registry, events }) {
      const registers = [registry]
      const meter =
        <T>(
          Meter: new (settings: { name: string; help: string; labelNames: string[]; registers: typeof registers }) => T,
        ) =>
        (name: keyof typeof WATCH_METRIC_NAMES, help: string, ...labelNames: string[]): T =>
          new Meter({ name: WATCH_METRIC_NAMES[name], help, labelNames, registers })
      const counter = meter<Counter>(prom.Counter)
      const worker = ['worker', 'worker_instance'] as const
      const desk = counter('worker.dlq.replayed', 'Dead letters replayed', 'topic')
      replayed = desk
      archived = counter('worker.dlq.archived', 'Dead letters moved into the archive', 'topic')
      const detach = countEnds(events, options, {
        letters: counter('worker.dlq.messages', 'Records moved to the dead letters', 'topic', ...worker),
        retries: counter('worker.retry.count', 'Retries, by worker and class of error', ...worker, 'error'),
        replayed: desk,
      })
      const show = options.watch === undefined ? () => {} : gauges(meter<Gauge>(prom.Gauge), options.heartbeats ?? true)
      return {
        async collect() {
          const reading = await options.watch?.read()
          if (reading === undefined) return
          show(reading)
          for (const { topic } of reading.pending.ok ? reading.pending.value : []) desk.inc({ topic }, 0)
        },
        detach,
      }
    },
    onReplayed: (topic) => replayed?.inc({ topic }),
    onArchived: (topic, count) => archived?.inc({ topic }, count),
  }
}

interface Ends {
  readonly letters: Counter
  readonly retries: Counter
  readonly replayed: Counter
}

function countEnds(
  events: Events,
  { dlqTopicOf }: WatchMetricsOptions,
  { letters, retries, replayed }: Ends,
): () => void {
  const names = new Map<string, string>()
  // Without a name its id is mostly a new one for every start, and each would be a series of its own.
  const labelsOf = (instance: string): Readonly<Record<string, string>> => {
    const name = names.get(instance)
    return name === undefined ? {} : { worker: name, worker_instance: instance }
  }
  const classes = new Set<string>()
  const classOf = (name: string): string => {
    if (!CLASS_NAME.test(name) || (classes.size >= CLASSES_MAX && !classes.has(name))) return 'other'
    classes.add(name)
    return name
  }
  const onEnded = ({ job, outcome, worker }: MillEvents['lease.reaped']): void => {
    const labels = labelsOf(worker)
    if (outcome.kind === 'retry') retries.inc({ worker: job.type, ...labels, error: classOf(outcome.error.name) })
    const topic = outcome.kind === 'dead' ? dlqTopicOf(job.type) : null
    if (topic !== null) letters.inc({ topic, ...labels })
  }
  return events.attach({
    'worker.started': ({ worker, name, types }) => {
      if (name !== undefined) names.set(worker, name)
      for (const type of types) {
        const topic = dlqTopicOf(type)
        if (topic === null) continue
        // A series that starts at 1 hides its first event from `rate`.
        letters.inc({ topic, ...labelsOf(worker) }, 0)
        replayed.inc({ topic }, 0)
      }
    },
    'worker.stopped': ({ worker }) => void names.delete(worker),
    'job.settled': onEnded,
    'lease.reaped': onEnded,
    'desk.acted': ({ action, type }) => {
      const topic = action === 'replay' ? dlqTopicOf(type) : null
      if (topic !== null) replayed.inc({ topic })
    },
  })
}

type MakeGauge = (name: keyof typeof WATCH_METRIC_NAMES, help: string, ...labelNames: string[]) => Gauge

/** Leaves out what cannot be read: an old value, or 0, would be wrong. */
function gauges(gauge: MakeGauge, heartbeats: boolean): (reading: Reading) => void {
  const worker = ['worker', 'worker_instance'] as const
  const lag = gauge('kafka.consumer.lag', 'Records that a group has yet to read', 'group', 'topic')
  const heartbeat = gauge('worker.heartbeat.timestamp', 'When a worker last sent a heartbeat', ...worker)
  const handled = gauge(
    'worker.last.message.timestamp',
    'When it last handled a record, was first seen, or was paused',
    ...worker,
  )
  const before = gauge('worker.consumer.lag', 'The lag that a worker last reported', ...worker)
  const retrying = gauge('worker.retrying', 'Partitions or keys held for a retry', ...worker)
  const stopping = gauge('worker.stopping.timestamp', 'When it began to stop', ...worker)
  const pending = gauge('worker.dlq.pending', 'Unresolved dead letters', 'topic')
  const up = gauge('worker.presence.up', 'Whether heartbeats could be read')
  return ({ workers, lags, pending: letters }) => {
    for (const one of [lag, heartbeat, handled, before, retrying, stopping, pending]) one.reset()
    if (heartbeats) up.set(workers.ok ? 1 : 0)
    else up.remove()
    for (const { group, topic, lag: behind } of lags.ok ? lags.value : []) lag.set({ group, topic }, behind)
    for (const { topic, count } of letters.ok ? letters.value : []) pending.set({ topic }, count)
    for (const one of workers.ok ? workers.value : []) {
      const labels = { worker: one.worker, worker_instance: one.instance }
      heartbeat.set(labels, one.seenAtMs / 1_000)
      retrying.set(labels, one.retrying)
      if (one.beat === null) continue
      handled.set(labels, activeAtMs(one) / 1_000)
      if (one.beat.lag !== null) before.set(labels, one.beat.lag)
      if (one.beat.stoppingSinceMs !== null) stopping.set(labels, one.beat.stoppingSinceMs / 1_000)
    }
  }
}
