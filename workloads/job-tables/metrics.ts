import type { Counter, Gauge, Histogram } from 'prom-client'
import type { MakeInstrument } from '../../src/observe/metrics/instrument.ts'

interface Tags {
  readonly table: string
  readonly stage?: string
}

/** Names that were given for the reaper stay as they are, also where Prometheus would have seconds. */
export const REAPER_METRIC_NAMES = Object.freeze({
  'reaper.requeues': 'reaper_requeues_total',
  'reaper.failures': 'reaper_failures_total',
  'reaper.scan_duration_ms': 'reaper_scan_duration_ms',
  'reaper.queue_age_ms': 'reaper_queue_age_seconds',
})

/** Milliseconds of one scan. */
const SCAN_BUCKETS: readonly number[] = Object.freeze([5, 25, 100, 500, 1_000, 5_000, 30_000])

/** What the reaper of job tables takes as `metrics`. */
export interface JobTableMetrics {
  count(name: 'reaper.requeues' | 'reaper.failures', tags: Tags): void
  measure(name: 'reaper.scan_duration_ms' | 'reaper.queue_age_ms', value: number, tags: Tags): void
  /** For `attachMetrics`. */
  readonly instrument: MakeInstrument
}

interface Meters {
  readonly counters: Readonly<Record<'reaper.requeues' | 'reaper.failures', Counter>>
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
    instrument({ prom, registry }) {
      const registers = [registry]
      const counter = (name: 'reaper.requeues' | 'reaper.failures', help: string) =>
        new prom.Counter({ name: REAPER_METRIC_NAMES[name], help, labelNames: ['table', 'stage'], registers })
      meters = {
        counters: {
          'reaper.requeues': counter('reaper.requeues', 'Rows whose lease expired and that were queued again'),
          'reaper.failures': counter('reaper.failures', 'Rows whose lease expired for the last time'),
        },
        scan: new prom.Histogram({
          name: REAPER_METRIC_NAMES['reaper.scan_duration_ms'],
          help: 'How long a scan of a table took',
          labelNames: ['table'],
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
      return { collect() {}, detach() {} }
    },
    count: (name, { table, stage = '' }) => meters?.counters[name].inc({ table, stage }),
    measure(name, value, { table }) {
      if (name === 'reaper.scan_duration_ms') meters?.scan.observe({ table }, value)
      else meters?.age.set({ table }, value / 1_000)
    },
  }
}
