import { presenceOf } from '../../src/engine/capability-checks.ts'
import type { Engine } from '../../src/engine/engine.ts'
import {
  checkHealth,
  type Health,
  type HealthChecks,
  type HealthEndpoint,
  type HealthOptions,
  type HealthStatus,
} from '../../src/observe/health.ts'
import { healthAnswer } from '../../src/observe/readiness.ts'

/** The health report with the worker framework's name for the engine's check. */
export interface WorkerHealthCheck extends Omit<Health, 'checks' | 'reasons'> {
  readonly checks: Omit<HealthChecks, 'engine'> & { readonly redis: HealthStatus }
}

/**
 * A health report for readers that expect the engine's check as `checks.redis`.
 *
 * @example
 * const { status, checks } = workerHealthCheck(await checkHealth(mill, { presence }))
 * console.log(status, checks.redis.latency)
 */
export function workerHealthCheck({ checks, status, details }: Health): WorkerHealthCheck {
  const { engine, ...others } = checks
  return { status, checks: { redis: engine, ...others }, details }
}

/**
 * Checks the mill's engine, workers, queues and dead letters, each for at most a second. `presence` is by default the
 * engine's own.
 *
 * @example
 * const { status } = await new WorkerHealthChecker(mill, { minWorkers: 2 }).check()
 */
export class WorkerHealthChecker {
  readonly #mill: { readonly engine: Engine }
  readonly #options: HealthOptions

  constructor(mill: { readonly engine: Engine }, options: Partial<HealthOptions> = {}) {
    this.#mill = mill
    this.#options = { ...options, presence: options.presence ?? presenceOf(mill.engine) }
  }

  async check(): Promise<WorkerHealthCheck> {
    return workerHealthCheck(await checkHealth(this.#mill, this.#options))
  }
}

/** The same for `createAdmin`: 503 when it is unhealthy. */
export const workerHealthEndpoint: HealthEndpoint =
  ({ health }) =>
  async () =>
    healthAnswer(workerHealthCheck(await health()))
