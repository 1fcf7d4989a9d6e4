import type { MetricParts } from './instrument.ts'
import { REAPER_METRIC_NAMES, SCAN_BUCKETS } from './names.ts'

interface Tags {
  readonly table: string
  readonly stage?: string
}

/** Where the reaper of document E reports; it is what `millrace/workloads/job-tables` asks for as `metrics`. */
export interface TableMetrics {
  count(name: 'reaper.requeues' | 'reaper.failures', tags: Tags): void
  measure(name: 'reaper.scan_duration_ms' | 'reaper.queue_age_ms', value: number, tags: Tags): void
}

/** The reaper's figures under document E's names, by table and stage. */
export function measureTables({ prom, registry }: Pick<MetricParts, 'prom' | 'registry'>): TableMetrics {
  const registers = [registry]
  const counter = (name: 'reaper.requeues' | 'reaper.failures', help: string) =>
    new prom.Counter({ name: REAPER_METRIC_NAMES[name], help, labelNames: ['table', 'stage'], registers })
  const counters = {
    'reaper.requeues': counter('reaper.requeues', 'Rows whose lease ran out and that were queued again'),
    'reaper.failures': counter('reaper.failures', 'Rows whose lease ran out for the last time'),
  }
  const scan = new prom.Histogram({
    name: REAPER_METRIC_NAMES['reaper.scan_duration_ms'],
    help: 'How long a scan of a table took',
    labelNames: ['table'],
    buckets: [...SCAN_BUCKETS],
    registers,
  })
  const age = new prom.Gauge({
    name: REAPER_METRIC_NAMES['reaper.queue_age_ms'],
    help: 'For how long the row that has been due longest waits',
    labelNames: ['table'],
    registers,
  })
  return {
    count: (name, { table, stage = '' }) => counters[name].inc({ table, stage }),
    measure(name, value, { table }) {
      if (name === 'reaper.scan_duration_ms') scan.observe({ table }, value)
      else age.set({ table }, value)
    },
  }
}
