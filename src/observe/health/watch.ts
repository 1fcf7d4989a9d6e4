import { isMissing } from '../watch/conditions.ts'
import { type LagLimits, lagSeverity } from '../watch/lag.ts'
import type { Found, GroupLag, PendingLetters, Reading } from '../watch/watch.ts'
import type { ActuatorComponent, ActuatorHealth, ActuatorWord } from './forms.ts'

export interface WatchHealthRules {
  readonly lagLimits: (topic: string) => LagLimits | null
  /** Types of which at least one worker must be known. None unless told. */
  readonly expected?: readonly string[]
  /** Whether money is at stake; given the topic of the dead letters. Nowhere unless told. */
  readonly isFinancial?: (dlqTopic: string) => boolean
}

/** Whether the broker answered, and how soon. */
export type Connectivity = Found<{ readonly latencyMs: number }>

/**
 * Document D's entries of `/actuator/health`: whether consumers reach Kafka, how far each group is behind, whether all
 * workers report, and how many dead letters wait. Only a broker that is away is DOWN, because nothing works without it,
 * and dead letters where money is at stake (X011).
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

/** What cannot be known is degraded, and says why. */
function fromFound<T>(found: Found<T>, show: (value: T) => ActuatorComponent): ActuatorComponent {
  return found.ok ? show(found.value) : component('DEGRADED', { error: found.error })
}

function lagComponent(lags: readonly GroupLag[], { lagLimits }: WatchHealthRules): ActuatorComponent {
  const groups: Record<string, Record<string, { readonly lag: number; readonly severity: string }>> = {}
  let isBehind = false
  for (const { group, topic, lag } of lags) {
    const limits = lagLimits(topic)
    const severity = limits === null ? null : lagSeverity(lag, limits)
    if (severity !== null) isBehind = true
    groups[group] = { ...groups[group], [topic]: { lag, severity: severity ?? 'OK' } }
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

/** X170: heartbeats that cannot be read are no missing workers. */
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

/** An answer of `/actuator/health` with more components: the worst of all decides, and only DOWN is 503. */
export function withComponents(
  health: ActuatorHealth,
  more: Readonly<Record<string, ActuatorComponent>>,
): { readonly httpStatus: 200 | 503; readonly body: ActuatorHealth } {
  const components = { ...health.components, ...more }
  const found = [health.status, ...Object.values(more).map(({ status }) => status)]
  const status = WORST_FIRST.find((word) => found.includes(word)) ?? 'UP'
  return { httpStatus: status === 'DOWN' ? 503 : 200, body: { ...health, status, components } }
}
