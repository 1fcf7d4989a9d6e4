import type { Counts, Engine } from '../../engine/engine.ts'
import { OptionError } from '../../errors.ts'
import type { Events } from '../../events.ts'
import { type OptionNames, refuseUnknown } from '../../job/known-options.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type JoinedMill, joinMills } from '../joined-mills.ts'
import { measureLeases, measureLetters, measureSchedules } from './event-counters.ts'
import { measureQueues, measureRunning, measureStats } from './gauges.ts'
import { collectorOf, type MakeInstrument, type MetricParts, type Metrics } from './instrument.ts'
import { measureJobs } from './jobs.ts'
import { isMetricsPrefix } from './names.ts'

export interface MetricsOptions {
  /** What every name starts with; default: `millrace_`. */
  readonly prefix?: string
  /** More metrics for the same scrape, such as those of a workload. */
  readonly instruments?: readonly MakeInstrument[]
  /** For the time that jobs wait; pass the mill's own clock if it has one. */
  readonly clock?: Clock
}

const METRICS_NAMES: OptionNames<MetricsOptions> = { prefix: true, instruments: true, clock: true }

const INSTRUMENTS: readonly MakeInstrument[] = [
  measureJobs,
  measureRunning,
  measureQueues,
  measureStats,
  measureLeases,
  measureLetters,
  measureSchedules,
]

/**
 * Measures a mill for Prometheus, or all mills of a process as one. Each series has the label `engine`. Attach before workers
 * start: earlier events are not counted.
 *
 * @example
 * const metrics = await attachMetrics(mill)
 * response.setHeader('content-type', metrics.contentType).end(await metrics.collectMetrics())
 */
export async function attachMetrics(
  mill: ReadMill | readonly [JoinedMill, ...JoinedMill[]],
  options: MetricsOptions = {},
): Promise<Metrics> {
  refuseUnknown(options, METRICS_NAMES, 'attachMetrics')
  const { events, engine } = 'engine' in mill ? mill : joinMills(mill)
  const { prefix = 'millrace_', instruments = [], clock = systemClock } = options
  if (!isMetricsPrefix(prefix)) {
    throw new OptionError(`'prefix' is '${prefix}'; give letters, digits, _ and :, not beginning with a digit`)
  }
  // Loaded here: a program without metrics does not pay for it.
  const { default: prom } = await import('prom-client')
  const registry = new prom.Registry()
  registry.setDefaultLabels({ engine: engine.name })
  const parts = { prom, registry, prefix, events, engine: countedOnce(engine), clock }
  return collectorOf(
    registry,
    [...INSTRUMENTS, ...instruments].map((measure) => measure(parts)),
  )
}

type ReadEngine = MetricParts['engine']

/** A mill, or what has its events and these parts of its engine. */
interface ReadMill {
  readonly events: Events
  readonly engine: ReadEngine & Pick<Engine, 'name'>
}

/** Instruments ask for the counts in the same turn of the event loop, and get one answer. A later scrape asks again. */
function countedOnce(engine: ReadEngine): ReadEngine {
  const { inspector, records, presence, capabilities } = engine
  let asked: Promise<Counts> | null = null
  return {
    counts() {
      if (asked === null) queueMicrotask(() => (asked = null))
      asked ??= engine.counts()
      return asked
    },
    ...(capabilities !== undefined && { capabilities }),
    ...(inspector !== undefined && { inspector }),
    ...(records !== undefined && { records }),
    ...(presence !== undefined && { presence }),
    ...(engine.workers !== undefined && { workers: async () => (await engine.workers?.()) ?? [] }),
  }
}
