import type { Registry } from 'prom-client'
import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { WorkersRead } from '../../engine/presence.ts'
import type { Events } from '../../events.ts'
import type { Clock } from '../../time/clock.ts'

/** Whether somebody must look for expired leases; unknown for an engine that does not say. */
export interface Recovering {
  readonly capabilities?: Pick<Capabilities, 'recovery'>
}

/** What an instrument measures with. */
export interface MetricParts {
  readonly prom: typeof import('prom-client')
  /** Not prom-client's global registry, which belongs to the program. */
  readonly registry: Registry
  readonly prefix: string
  readonly events: Events
  readonly engine: Pick<Engine, 'counts' | 'inspector'> & WorkersRead & Recovering
  readonly clock: Clock
}

/** A group of related metrics. It listens from the start, and reads what events cannot tell when it is collected. */
export interface Instrument {
  collect(): Promise<void> | void
  detach(): void
}

export type MakeInstrument = (parts: MetricParts) => Instrument

/** Metrics of a mill, or of several. Labels are job types and fixed words, never a tenant or an id. */
export interface Metrics {
  /** The content type of the HTTP response. */
  readonly contentType: string
  /**
   * All metrics in Prometheus' text format, with queue depths read now. When the engine does not answer within a second,
   * the depths are left out and `engine_up` is 0. Concurrent calls share one result.
   */
  collectMetrics(): Promise<string>
  /** Stops listening. The counts stay. */
  detach(): void
}

/** Concurrent scrapes read the store once. */
export function collectorOf(registry: Registry, instruments: readonly Instrument[]): Metrics {
  let underWay: Promise<string> | null = null
  const collect = async (): Promise<string> => {
    await Promise.all(instruments.map((instrument) => instrument.collect()))
    return registry.metrics()
  }
  return {
    contentType: registry.contentType,
    collectMetrics() {
      underWay ??= collect().finally(() => {
        underWay = null
      })
      return underWay
    },
    detach() {
      for (const instrument of instruments) instrument.detach()
    },
  }
}

/** An instrument that only counts events. */
export function eventInstrument(detach: () => void): Instrument {
  return { collect() {}, detach }
}
