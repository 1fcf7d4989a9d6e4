import type { Engine } from '../../engine/engine.ts'
import { EngineError, OptionError } from '../../errors.ts'
import type { Events } from '../../events.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { measureJobs } from './jobs.ts'
import { measureQueues } from './queues.ts'
import { measureRunning } from './running.ts'

export interface MetricsOptions {
  /** What every name begins with: `millrace_` unless told. The framework of document A takes `ruvbot_worker_`. */
  readonly prefix?: string
  /** For the time that jobs wait; give the mill's own if it has one. */
  readonly clock?: Clock
}

/** Metrics of one mill in a registry of their own. Labels are types and words, never a tenant or an id (I12, X028). */
export interface Metrics {
  /** Of the HTTP answer that carries them. */
  readonly contentType: string
  /**
   * Everything in Prometheus' text format, depths read now. It never fails because of the engine: within a second it
   * answers without depths, and `engine_up` is 0.
   */
  collectMetrics(): Promise<string>
  /** Stops listening. What was counted stays. */
  detach(): void
}

/** A mill, or whatever has its events and its engine. */
export interface Measured {
  readonly events: Events
  readonly engine: Pick<Engine, 'counts'>
}

const PREFIX = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const INSTRUMENTS = [measureJobs, measureRunning, measureQueues]

/**
 * Measures a mill with `prom-client`, which is loaded here and nowhere else. Attach before workers start: what happened
 * earlier is not counted.
 *
 * @example
 * const metrics = await attachMetrics(mill)
 * response.setHeader('content-type', metrics.contentType).end(await metrics.collectMetrics())
 */
export async function attachMetrics(mill: Measured, options: MetricsOptions = {}): Promise<Metrics> {
  const { prefix = 'millrace_', clock = systemClock } = options
  if (!PREFIX.test(prefix)) {
    throw new OptionError(`'prefix' is '${prefix}'; give letters, digits, _ and :, not beginning with a digit`)
  }
  const { default: prom } = await import('prom-client').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', 'To collect metrics: npm install prom-client', { cause: error })
  })
  const registry = new prom.Registry()
  const parts = { prom, registry, prefix, events: mill.events, engine: mill.engine, clock }
  const instruments = INSTRUMENTS.map((measure) => measure(parts))
  return {
    contentType: registry.contentType,
    async collectMetrics() {
      await Promise.all(instruments.map((instrument) => instrument.collect()))
      return registry.metrics()
    },
    detach() {
      for (const instrument of instruments) instrument.detach()
    },
  }
}
