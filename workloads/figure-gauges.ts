/** Gauges for figures that a workload reads from its store at each scrape. */
import type { MakeInstrument, MetricParts } from '../src/observe/metrics/instrument.ts'
import { findWithin } from '../src/observe/observed-mill.ts'

/** The name in a scrape, what it means, and what a unit of the figure is there; default: 1. */
export type GaugeOf = readonly [name: string, help: string, unit?: number]

/**
 * Their names begin with the prefix of the others and `family`. Every process of a store reports the same: take the
 * maximum, not the sum. Figures that cannot be read within a second are left out, and the other metrics are not.
 */
export function figureGauges<Figure extends string>(
  family: string,
  table: Readonly<Record<Figure, GaugeOf>>,
  read: (parts: MetricParts) => Promise<Readonly<Record<Figure, number>>>,
): MakeInstrument {
  return (parts) => {
    const { prom, registry, prefix, clock } = parts
    const gauges = Object.entries<GaugeOf>(table).map(([figure, [name, help, unit = 1]]) => ({
      // The keys of the table.
      figure: figure as Figure,
      unit,
      gauge: new prom.Gauge({ name: `${prefix}${family}_${name}`, help, registers: [registry] }),
    }))
    return {
      async collect() {
        const found = await findWithin(clock, `the figures of ${family}`, () => read(parts))
        for (const { figure, unit, gauge } of gauges) {
          if (found.ok) gauge.set(found.value[figure] * unit)
          else gauge.remove()
        }
      },
      detach() {},
    }
  }
}
