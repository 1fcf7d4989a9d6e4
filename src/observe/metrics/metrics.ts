import type { Engine } from '../../engine/engine.ts'
import { OptionError } from '../../errors.ts'
import type { Events } from '../../events.ts'
import { type OptionNames, refuseUnknown } from '../../job/known-options.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { Watch } from '../watch/watch.ts'
import { collectorOf, type Metrics } from './collector.ts'
import { measureFigures } from './figures.ts'
import { measureJobs } from './jobs.ts'
import { measureLeases } from './leases.ts'
import { measureLetters } from './letters.ts'
import { measureQueues } from './queues.ts'
import { measureRunning } from './running.ts'
import { measureSchedules } from './schedules.ts'
import { measureTables, type TableMetrics } from './tables.ts'
import { measureTopics, type WatchMetrics, type WatchMetricsOptions } from './watch.ts'

export type { Metrics } from './collector.ts'

export interface MetricsOptions {
  /** What names of documents A and B begin with: `millrace_` unless told. The framework of A takes `ruvbot_worker_`. */
  readonly prefix?: string
  /** Of document D's metrics, which have no prefix: lags and dead letters by topic. Heartbeats are the engine's unless told. */
  readonly topics?: WatchMetricsOptions
  /** For the time that jobs wait; give the mill's own if it has one. */
  readonly clock?: Clock
}

/** A mill, or whatever has its events and its engine. */
const METRICS_NAMES: OptionNames<MetricsOptions> = { prefix: true, topics: true, clock: true }

export interface Measured {
  readonly events: Events
  readonly engine: Pick<Engine, 'name' | 'counts' | 'inspector' | 'presence'>
}

export interface MillMetrics extends Metrics, Pick<WatchMetrics, 'onReplayed'> {
  /** Give it to the reaper of document E as `metrics`, and its figures are in the same scrape. */
  readonly tables: TableMetrics
}

const PREFIX = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const INSTRUMENTS = [
  measureJobs,
  measureRunning,
  measureQueues,
  measureFigures,
  measureLeases,
  measureLetters,
  measureSchedules,
]

/**
 * Measures a mill for Prometheus: everything of documents A, B, D and E, each series labelled with its engine. Attach
 * before workers start: what happened earlier is not counted.
 *
 * @example
 * const metrics = await attachMetrics(mill)
 * response.setHeader('content-type', metrics.contentType).end(await metrics.collectMetrics())
 */
export async function attachMetrics(mill: Measured, options: MetricsOptions = {}): Promise<MillMetrics> {
  refuseUnknown(options, METRICS_NAMES, 'attachMetrics')
  const { prefix = 'millrace_', clock = systemClock } = options
  if (!PREFIX.test(prefix)) {
    throw new OptionError(`'prefix' is '${prefix}'; give letters, digits, _ and :, not beginning with a digit`)
  }
  // Loaded here: a program that measures nothing need not wait for it.
  const { default: prom } = await import('prom-client')
  const registry = new prom.Registry()
  registry.setDefaultLabels({ engine: mill.engine.name })
  const parts = { prom, registry, prefix, events: mill.events, engine: mill.engine, clock }
  const watched = options.topics ?? heartbeatsOf(mill.engine, clock)
  const topics = watched === null ? null : measureTopics(parts, watched)
  const instruments = INSTRUMENTS.map((measure) => measure(parts))
  return {
    ...collectorOf(registry, topics === null ? instruments : [...instruments, topics]),
    onReplayed: (dlqTopic) => topics?.onReplayed(dlqTopic),
    tables: measureTables(parts),
  }
}

/** Where the engine keeps presence, workers are seen on it without any topic. */
function heartbeatsOf({ presence }: Measured['engine'], clock: Clock): WatchMetricsOptions | null {
  if (presence === undefined) return null
  const none = async () => []
  return { watch: new Watch({ presence, lags: none, pending: none, clock }), dlqTopicOf: () => null }
}
