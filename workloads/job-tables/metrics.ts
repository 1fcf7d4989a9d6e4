import type { Counter, Gauge, Histogram } from 'prom-client'
import { collectorOf, type Instrument, type MetricParts, type Metrics } from '../../src/observe/metrics/instrument.ts'
import type { ReaperCounter, ReaperMetrics } from './reaper-report.ts'

/** Names that were given for the reaper stay as they are, also where Prometheus would have seconds. */
export const REAPER_METRIC_NAMES = Object.freeze({
  'reaper.requeues': 'reaper_requeues_total',
  'reaper.failures': 'reaper_failures_total',
  'reaper.scan_duration_ms': 'reaper_scan_duration_ms',
  'reaper.queue_age_ms': 'reaper_queue_age_seconds',
})

/** Milliseconds of one scan. */
const SCAN_BUCKETS: readonly number[] = Object.freeze([5, 25, 100, 500, 1_000, 5_000, 30_000])

type Parts = Pick<MetricParts, 'prom' | 'registry'>

/** What the reaper of job tables takes as `metrics`. */
export interface JobTableMetrics extends ReaperMetrics {
  /** For `attachMetrics`. */
  readonly instrument: (parts: Parts) => Instrument
}

interface Meters {
  readonly counters: Readonly<Record<ReaperCounter, Counter>>
  readonly scan: Histogram
  readonly age: Gauge
}

/**
 * The reaper's metrics, by table and stage. What it reports before `attachMetrics` has the instrument is not counted.
 *
 * @example
 * const tables = jobTableMetrics()
 * const metrics = await attachMetrics(mill, { instruments: [tables.instrument] })
 */
export function jobTableMetrics(): JobTableMetrics {
  let meters: Meters | null = null
  return {
    instrument(parts) {
      meters = metersIn(parts)
      return { collect() {}, detach() {} }
    },
    // A series that starts at 1 hides its first event from `increase`.
    announce({ table, stage }) {
      for (const counter of Object.values(meters?.counters ?? {})) counter.inc({ table, stage }, 0)
    },
    count: (name, { table, stage = '' }) => meters?.counters[name].inc({ table, stage }),
    measure(name, value, { table, stage = '' }) {
      if (name === 'reaper.scan_duration_ms') meters?.scan.observe({ table, stage }, value)
      else meters?.age.set({ table }, value / 1_000)
    },
  }
}

/** In a scrape of their own, for a process without a mill. */
export async function openReaperMetrics(): Promise<ReaperMetrics & Metrics> {
  const { default: prom } = await import('prom-client')
  const registry = new prom.Registry()
  const { instrument, ...metrics } = jobTableMetrics()
  return { ...metrics, ...collectorOf(registry, [instrument({ prom, registry })]) }
}

function metersIn({ prom, registry }: Parts): Meters {
  const registers = [registry]
  const labelNames = ['table', 'stage']
  const counter = (name: ReaperCounter, help: string) =>
    new prom.Counter({ name: REAPER_METRIC_NAMES[name], help, labelNames, registers })
  return {
    counters: {
      'reaper.requeues': counter('reaper.requeues', 'Rows whose lease expired and that were queued again'),
      'reaper.failures': counter('reaper.failures', 'Rows whose lease expired for the last time'),
    },
    scan: new prom.Histogram({
      name: REAPER_METRIC_NAMES['reaper.scan_duration_ms'],
      help: 'How long a scan of a table took, over all stages',
      labelNames,
      buckets: [...SCAN_BUCKETS],
      registers,
    }),
    age: new prom.Gauge({
      name: REAPER_METRIC_NAMES['reaper.queue_age_ms'],
      help: 'How long the oldest due row has been waiting',
      labelNames: ['table'],
      registers,
    }),
  }
}
