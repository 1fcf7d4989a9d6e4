import type { Mill } from '../../src/client/mill.ts'
import { attachMetrics, type Metrics, type MetricsOptions } from '../../src/observe/index.ts'

/** The prefix that the framework's metrics have. */
export const METRICS_PREFIX = 'ruvbot_worker_'

/**
 * The mill's metrics under the framework's names: `ruvbot_worker_jobs_total` and so on. Create it before workers start and
 * await `ready`: earlier events are not counted.
 *
 * @example
 * const exporter = new WorkerMetricsExporter(mill)
 * await exporter.ready
 * console.log(await exporter.collectMetrics())
 */
export class WorkerMetricsExporter {
  /** Resolves once it counts; rejects if an option is invalid. */
  readonly ready: Promise<void>
  readonly #metrics: Promise<Metrics>

  constructor(mill: Mill, options: MetricsOptions = {}) {
    this.#metrics = attachMetrics(mill, { prefix: METRICS_PREFIX, ...options })
    this.ready = this.#metrics.then(() => {})
    // A program that awaits only `collectMetrics` gets the error there.
    this.ready.catch(() => {})
  }

  /** In Prometheus' text format, with the depths of all queues read now. */
  async collectMetrics(): Promise<string> {
    return (await this.#metrics).collectMetrics()
  }

  /** Stops counting. */
  async detach(): Promise<void> {
    ;(await this.#metrics).detach()
  }
}
