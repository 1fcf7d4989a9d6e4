import type { Health, HealthChecks, HealthStatus, HealthWord } from './health.ts'

/** Document A's own form. */
export interface WorkerHealthCheck extends Omit<Health, 'checks'> {
  readonly checks: Omit<HealthChecks, 'engine'> & { readonly redis: HealthStatus }
}

/**
 * The same health with the engine's check under document A's name for it, for readers that look for `checks.redis`.
 *
 * @example
 * const { status, checks } = workerHealthCheck(await checkHealth(mill, { presence }))
 * console.log(status, checks.redis.latency)
 */
export function workerHealthCheck({ checks, ...health }: Health): WorkerHealthCheck {
  const { engine, ...others } = checks
  return { ...health, checks: { redis: engine, ...others } }
}

export type ActuatorWord = 'UP' | 'DEGRADED' | 'DOWN'

export interface ActuatorComponent {
  readonly status: ActuatorWord
  readonly details: Readonly<Record<string, unknown>>
}

export interface ActuatorHealth extends ActuatorComponent {
  readonly components: Readonly<Record<string, ActuatorComponent>>
}

const ACTUATOR: Readonly<Record<HealthWord, ActuatorWord>> = {
  healthy: 'UP',
  degraded: 'DEGRADED',
  unhealthy: 'DOWN',
}

/**
 * What `/actuator/health` answers, and with which HTTP status: a degraded program still takes requests, so only DOWN is
 * 503. Document A's word stands in the details (X027).
 *
 * @example
 * const { httpStatus, body } = actuatorHealth(await checkHealth(mill, { presence }))
 * response.writeHead(httpStatus).end(JSON.stringify(body))
 */
export function actuatorHealth(health: Health): { readonly httpStatus: 200 | 503; readonly body: ActuatorHealth } {
  const components = Object.entries(health.checks).map(([name, check]: [string, HealthStatus]) => {
    const { status, details, ...rest } = check
    return [name, { status: ACTUATOR[status], details: { status, ...rest, ...details } }] as const
  })
  return {
    httpStatus: health.status === 'unhealthy' ? 503 : 200,
    body: {
      status: ACTUATOR[health.status],
      details: { status: health.status, ...health.details },
      components: Object.fromEntries(components),
    },
  }
}
