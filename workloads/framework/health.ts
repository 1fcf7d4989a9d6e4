import type { Health, HealthChecks, HealthStatus } from '../../src/observe/health.ts'

/** The health report with the worker framework's name for the engine's check. */
export interface WorkerHealthCheck extends Omit<Health, 'checks'> {
  readonly checks: Omit<HealthChecks, 'engine'> & { readonly redis: HealthStatus }
}

/**
 * A health report for readers that expect the engine's check as `checks.redis`.
 *
 * @example
 * const { status, checks } = workerHealthCheck(await checkHealth(mill, { presence }))
 * console.log(status, checks.redis.latency)
 */
export function workerHealthCheck({ checks, ...health }: Health): WorkerHealthCheck {
  const { engine, ...others } = checks
  return { ...health, checks: { redis: engine, ...others } }
}
