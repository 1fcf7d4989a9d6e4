/** Health in the format of Spring's actuator, as the escrow platform reads it at `/actuator/health`. */
import type { TopicLag } from '../../src/engine/open.ts'
import type { Health, HealthEndpoint, HealthStatus, HealthWord } from '../../src/observe/health.ts'
import { type LagLimits, lagSeverity, type PendingLetters } from '../../src/observe/lag.ts'
import type { Found } from '../../src/observe/observed-mill.ts'
import { isMissing } from '../../src/observe/workers.ts'
import { type Reading, Watch } from './watch.ts'

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
 * A health report in this format, with its HTTP status: a degraded program still takes requests, so only DOWN is 503. The
 * details keep the word of the report.
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

export interface WatchHealthRules {
  readonly lagLimits: (topic: string) => LagLimits | null
  /** Types that need at least one worker; default: none. */
  readonly expected?: readonly string[]
  /** Whether letters of this dead-letter topic involve money; default: no topic does. */
  readonly isFinancial?: (dlqTopic: string) => boolean
}

/** Whether the broker answered, and how soon. */
export type Connectivity = Found<{ readonly latencyMs: number }>

/**
 * The components of the escrow workers: whether consumers reach Kafka, how far each group is behind, whether all workers
 * report, and how many dead letters are unresolved. Only an unreachable broker and dead letters that involve money are
 * DOWN.
 *
 * @example
 * const answer = withComponents(body, watchHealth(await watch.read(), { ok: true, value: { latencyMs: 3 } }, { lagLimits }))
 */
export function watchHealth(
  reading: Reading,
  kafka: Connectivity,
  rules: WatchHealthRules,
): Readonly<Record<'kafka' | 'consumerLag' | 'workerHeartbeats' | 'dlq', ActuatorComponent>> {
  return {
    kafka: kafka.ok ? component('UP', { ...kafka.value }) : component('DOWN', { error: kafka.error }),
    consumerLag: fromFound(reading.lags, (lags) => lagComponent(lags, rules)),
    workerHeartbeats: heartbeats(reading, rules.expected ?? []),
    dlq: fromFound(reading.pending, (pending) => lettersComponent(pending, rules)),
  }
}

function component(status: ActuatorWord, details: Readonly<Record<string, unknown>>): ActuatorComponent {
  return { status, details }
}

/** A source that cannot be read is DEGRADED, with the error. */
function fromFound<T>(found: Found<T>, show: (value: T) => ActuatorComponent): ActuatorComponent {
  return found.ok ? show(found.value) : component('DEGRADED', { error: found.error })
}

function lagComponent(lags: readonly TopicLag[], { lagLimits }: WatchHealthRules): ActuatorComponent {
  const groups: Record<string, Record<string, { readonly lag: number; readonly severity: string }>> = {}
  let isBehind = false
  for (const { group, topic, lag } of lags) {
    const limits = lagLimits(topic)
    const severity = limits === null ? null : lagSeverity(lag, limits)
    if (severity !== null) isBehind = true
    groups[group] = { ...groups[group], [topic]: { lag, severity: (severity ?? 'ok').toUpperCase() } }
  }
  return component(isBehind ? 'DEGRADED' : 'UP', groups)
}

function lettersComponent(pending: readonly PendingLetters[], { isFinancial }: WatchHealthRules): ActuatorComponent {
  const waiting = pending.filter(({ count }) => count > 0)
  const count = waiting.reduce((sum, one) => sum + one.count, 0)
  const topics = Object.fromEntries(pending.map((one) => [one.topic, one.count]))
  const worst = waiting.some(({ topic }) => isFinancial?.(topic) === true) ? 'DOWN' : 'DEGRADED'
  return component(count === 0 ? 'UP' : worst, { count, topics })
}

/** Unreadable heartbeats do not mean missing workers. */
function heartbeats({ workers, atMs }: Reading, expected: readonly string[]): ActuatorComponent {
  return fromFound(workers, (known) => {
    const missing = known.filter((one) => isMissing(one, atMs)).map(({ instance }) => instance)
    const types = new Set(known.map(({ worker }) => worker))
    const absent = expected.filter((type) => !types.has(type))
    const reporting = known.length - missing.length
    return component(missing.length + absent.length === 0 ? 'UP' : 'DEGRADED', { reporting, missing, absent })
  })
}

const WORST_FIRST = ['DOWN', 'DEGRADED', 'UP'] as const

/** Adds components to a report: the worst of all decides, and only DOWN is 503. */
export function withComponents(
  health: ActuatorHealth,
  more: Readonly<Record<string, ActuatorComponent>>,
): { readonly httpStatus: 200 | 503; readonly body: ActuatorHealth } {
  const components = { ...health.components, ...more }
  const found = [health.status, ...Object.values(more).map(({ status }) => status)]
  const status = WORST_FIRST.find((word) => found.includes(word)) ?? 'UP'
  return { httpStatus: status === 'DOWN' ? 503 : 200, body: { ...health, status, components } }
}

export interface ActuatorOptions extends Omit<WatchHealthRules, 'lagLimits'> {
  /** Default: the limits of the server's topics. */
  readonly lagLimits?: WatchHealthRules['lagLimits']
}

/**
 * `/actuator/health` for `createAdmin`. With topics it has the components of the escrow workers.
 *
 * @example
 * const admin = createAdmin(mill, { healthEndpoints: { '/actuator/health': actuatorEndpoint() } })
 */
export function actuatorEndpoint(options: ActuatorOptions = {}): HealthEndpoint {
  return ({ health, ping, presence, topics, clock }) => {
    if (topics === null) return async () => actuatorHealth(await health())
    const watch = new Watch({
      presence,
      clock,
      lags: () => topics.lags(),
      pending: async () => (await topics.pending?.()) ?? [],
    })
    const rules = { lagLimits: (topic: string) => topics.limits(topic), ...options }
    return async () => {
      const [report, reading, kafka] = await Promise.all([health(), watch.read(), ping()])
      return withComponents(actuatorHealth(report).body, watchHealth(reading, kafka, rules))
    }
  }
}
