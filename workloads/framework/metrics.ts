import type { Log } from '../../src/job/definition.ts'

/** Where a worker counts. Bring your own: a few lines over any client will do. */
export interface Metrics {
  increment(name: string): void
  timing(name: string, ms: number): void
}

export const noMetrics: Metrics = Object.freeze({ increment: () => {}, timing: () => {} })

/** The same under a prefix. A collector that throws is logged and never disturbs the work. */
export function prefixed(metrics: Metrics, prefix: string, log: Log): Metrics {
  const guarded = (name: string, collect: (name: string) => void): void => {
    try {
      collect(`${prefix}.${name}`)
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      log.warn('A metric could not be collected', { metric: `${prefix}.${name}`, error: text })
    }
  }
  return {
    increment: (name) => guarded(name, (full) => metrics.increment(full)),
    timing: (name, ms) => guarded(name, (full) => metrics.timing(full, ms)),
  }
}
