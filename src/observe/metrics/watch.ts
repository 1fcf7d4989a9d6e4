import type { Counter, Gauge } from 'prom-client'
import type { Events, MillEvents } from '../../events.ts'
import { type OptionNames, refuseUnknown } from '../../job/known-options.ts'
import type { Reading, Watch } from '../watch/watch.ts'
import { collectorOf, type Metrics } from './collector.ts'
import type { Instrument, MetricParts } from './instrument.ts'

/** Document D's names, as Micrometer writes them for Prometheus, and what its rules need besides. Times are seconds. */
export const WATCH_METRIC_NAMES = Object.freeze({
  'kafka.consumer.lag': 'kafka_consumer_lag',
  'worker.heartbeat.timestamp': 'worker_heartbeat_timestamp',
  'worker.dlq.messages': 'worker_dlq_messages_total',
  'worker.dlq.replayed': 'worker_dlq_replayed_total',
  'worker.retry.count': 'worker_retry_count_total',
  'worker.dlq.pending': 'worker_dlq_pending',
  'worker.last.message.timestamp': 'worker_last_message_timestamp',
  'worker.consumer.lag': 'worker_consumer_lag',
  'worker.retrying': 'worker_retrying',
  'worker.stopping.timestamp': 'worker_stopping_timestamp',
  'worker.presence.up': 'worker_presence_up',
})

export interface WatchMetricsOptions {
  /** Read at every scrape. One process of all is enough to have one; the others say only what they do themselves. */
  readonly watch?: Pick<Watch, 'read'>
  /** The topic of the dead letters of a type; null for a type that is on no topic. */
  readonly dlqTopicOf: (type: string) => string | null
  /** What a type's worker is called; the type itself unless told. */
  readonly workerOf?: (type: string) => string
}

const WATCH_NAMES: OptionNames<WatchMetricsOptions> = { watch: true, dlqTopicOf: true, workerOf: true }

export interface WatchMetrics extends Metrics {
  /** Counts a replay; give it to the desk of dead letters. */
  readonly onReplayed: (dlqTopic: string) => void
}

/** X169: a class has a short name. What is no such name, or one too many, is `other`, so that labels stay few. */
const CLASS_NAME = /^[A-Za-z_$][\w$.]{0,99}$/
const CLASSES_MAX = 100

/**
 * Measures what document D asks of workers on topics, in a registry of its own and without a prefix. `attachMetrics`
 * with `topics` has the same beside everything else.
 *
 * @example
 * const metrics = await attachWatchMetrics(mill, { watch, dlqTopicOf: (type) => `${type}.dlq` })
 * response.setHeader('content-type', metrics.contentType).end(await metrics.collectMetrics())
 */
export async function attachWatchMetrics(
  mill: { readonly events: Events },
  options: WatchMetricsOptions,
): Promise<WatchMetrics> {
  refuseUnknown(options, WATCH_NAMES, 'attachWatchMetrics')
  const { default: prom } = await import('prom-client')
  const registry = new prom.Registry()
  const topics = measureTopics({ prom, registry, events: mill.events }, options)
  return { ...collectorOf(registry, [topics]), onReplayed: topics.onReplayed }
}

/** Document D's metrics as one of several instruments. */
export function measureTopics(
  { prom, registry, events }: Pick<MetricParts, 'prom' | 'registry' | 'events'>,
  options: WatchMetricsOptions,
): Instrument & Pick<WatchMetrics, 'onReplayed'> {
  const registers = [registry]
  const meter =
    <T>(
      Meter: new (settings: { name: string; help: string; labelNames: string[]; registers: typeof registers }) => T,
    ) =>
    (name: keyof typeof WATCH_METRIC_NAMES, help: string, ...labelNames: string[]): T =>
      new Meter({ name: WATCH_METRIC_NAMES[name], help, labelNames, registers })
  const counter = meter<Counter>(prom.Counter)
  const gauge = meter<Gauge>(prom.Gauge)
  const replayed = counter('worker.dlq.replayed', 'Dead letters replayed', 'topic')
  const detach = countEnds(events, options, {
    letters: counter('worker.dlq.messages', 'Records moved to the dead letters', 'topic'),
    retries: counter('worker.retry.count', 'Retries, by worker and class of error', 'worker', 'error'),
  })
  const show = options.watch === undefined ? () => {} : gauges(gauge)
  return {
    async collect() {
      const reading = await options.watch?.read()
      if (reading !== undefined) show(reading)
    },
    onReplayed: (topic) => replayed.inc({ topic }),
    detach,
  }
}

interface Ends {
  readonly letters: Counter
  readonly retries: Counter
}

function countEnds(events: Events, options: WatchMetricsOptions, { letters, retries }: Ends): () => void {
  const { dlqTopicOf, workerOf = (type: string) => type } = options
  const classes = new Set<string>()
  const classOf = (name: string): string => {
    if (!CLASS_NAME.test(name) || (classes.size >= CLASSES_MAX && !classes.has(name))) return 'other'
    classes.add(name)
    return name
  }
  const onEnded = ({ job, outcome }: MillEvents['lease.reaped']): void => {
    if (outcome.kind === 'retry') retries.inc({ worker: workerOf(job.type), error: classOf(outcome.error.name) })
    const topic = outcome.kind === 'dead' ? dlqTopicOf(job.type) : null
    if (topic !== null) letters.inc({ topic })
  }
  const detachers = [
    // A series that begins at 1 hides its first event from `rate`.
    events.on('worker.started', ({ types }) => {
      for (const topic of types.map(dlqTopicOf)) if (topic !== null) letters.inc({ topic }, 0)
    }),
    events.on('job.settled', onEnded),
    events.on('lease.reaped', onEnded),
  ]
  return () => {
    for (const detach of detachers) detach()
  }
}

type MakeGauge = (name: keyof typeof WATCH_METRIC_NAMES, help: string, ...labelNames: string[]) => Gauge

/** What cannot be read is left out: an old value would be a lie, and 0 another one. */
function gauges(gauge: MakeGauge): (reading: Reading) => void {
  const worker = ['worker', 'worker_instance'] as const
  const lag = gauge('kafka.consumer.lag', 'Records that a group has before it', 'group', 'topic')
  const heartbeat = gauge('worker.heartbeat.timestamp', 'When a worker was last heard', ...worker)
  const handled = gauge('worker.last.message.timestamp', 'When it last handled a record, or was first met', ...worker)
  const before = gauge('worker.consumer.lag', 'The lag that a worker last said', ...worker)
  const retrying = gauge('worker.retrying', 'Partitions or keys held for a retry', ...worker)
  const stopping = gauge('worker.stopping.timestamp', 'Since when it has been stopping', ...worker)
  const pending = gauge('worker.dlq.pending', 'Dead letters that nobody has resolved', 'topic')
  const up = gauge('worker.presence.up', 'Whether heartbeats could be read')
  return ({ workers, lags, pending: letters }) => {
    for (const one of [lag, heartbeat, handled, before, retrying, stopping, pending]) one.reset()
    up.set(workers.ok ? 1 : 0)
    for (const { group, topic, lag: behind } of lags.ok ? lags.value : []) lag.set({ group, topic }, behind)
    for (const { topic, count } of letters.ok ? letters.value : []) pending.set({ topic }, count)
    for (const one of workers.ok ? workers.value : []) {
      const labels = { worker: one.worker, worker_instance: one.instance }
      heartbeat.set(labels, one.seenAtMs / 1_000)
      retrying.set(labels, one.retrying)
      if (one.beat === null) continue
      handled.set(labels, (one.beat.lastJobAtMs ?? one.knownSinceMs) / 1_000)
      if (one.beat.lag !== null) before.set(labels, one.beat.lag)
      if (one.beat.stoppingSinceMs !== null) stopping.set(labels, one.beat.stoppingSinceMs / 1_000)
    }
  }
}
