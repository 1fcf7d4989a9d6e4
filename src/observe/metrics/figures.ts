import { attachFigures } from '../figures/collect.ts'
import type { EndedFigures } from '../figures/figures.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

type Shown = Exclude<keyof EndedFigures, 'processed' | 'completed'>

const HELP: Readonly<Record<Shown, string>> = {
  processingRate: 'Jobs completed here per minute, over the last hour',
  successRate: 'Completed jobs of those completed or dead here, over the last hour',
  attemptFailureRate: 'Failed attempts of all that ended here, over the last hour',
  latencyP50Ms: 'Half of the attempts that completed here in the last hour took no longer',
  latencyP95Ms: '95 % of the attempts that completed here in the last hour took no longer',
  latencyP99Ms: '99 % of the attempts that completed here in the last hour took no longer',
  leaseExpiryRate: 'Leases that ran out and were recovered here per minute, over the last hour',
}

/** Document B's key figures of this process. Over several processes ask the counters and histograms instead. */
export function measureFigures({ prom, registry, prefix, events, engine, clock }: MetricParts): Instrument {
  const figures = attachFigures({ events, engine }, { clock })
  const gauges = Object.entries(HELP).map(([name, help]) => {
    // The table above has the names of the figures, each once.
    const figure = name as Shown
    const settings = { name: prefix + METRIC_NAMES[figure], help, labelNames: ['type'], registers: [registry] }
    return { figure, gauge: new prom.Gauge(settings) }
  })
  return {
    collect() {
      const found = [...figures.endedByType()]
      for (const { figure, gauge } of gauges) {
        gauge.reset()
        for (const [type, ended] of found) gauge.set({ type }, ended[figure])
      }
    },
    detach: () => figures.detach(),
  }
}
