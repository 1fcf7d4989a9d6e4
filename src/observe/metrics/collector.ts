import type { Registry } from 'prom-client'
import type { Instrument } from './instrument.ts'

/** Metrics of one mill in a registry of their own. Labels are types and words, never a tenant or an id (I12, X028). */
export interface Metrics {
  /** Of the HTTP answer that carries them. */
  readonly contentType: string
  /**
   * Everything in Prometheus' text format, depths read now. It never fails because of the engine: within a second it
   * answers without depths, and `engine_up` is 0. Whoever asks while it is being read is given the same answer.
   */
  collectMetrics(): Promise<string>
  /** Stops listening. What was counted stays. */
  detach(): void
}

/** Several scrapers at once cost no more than one: the store is the workers'. */
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
