import { refuseUnknown } from '../../job/known-options.ts'
/** Rules over document A's health checks, and over dead letters of types that matter most. */
import type { Health, HealthStatus, HealthWord } from '../health/health.ts'
import { type AlertRule, type Breach, NO_BREACH } from './rule.ts'

export interface HealthRuleOptions {
  /** Types of which a single dead letter is bad (A167). None unless told. */
  readonly critical?: readonly string[]
}

interface HealthRule extends Omit<AlertRule, 'evaluate'> {
  readonly check: keyof Health['checks']
  /** The word of the check that raises it. */
  readonly status: HealthWord
  /** Whether it is raised by a check that failed, or by what a check found. */
  readonly raisedBy: 'failure' | 'finding' | 'either'
  readonly text: (status: HealthStatus) => string
}

/** A start or a pause of a minute is no alert. */
const A_MINUTE = '1m'

const RULES: readonly HealthRule[] = [
  {
    name: 'EngineDown',
    severity: 'critical',
    check: 'engine',
    status: 'unhealthy',
    raisedBy: 'either',
    text: ({ error }) => `the engine does not answer: ${error}`,
  },
  {
    name: 'EngineSlow',
    severity: 'warning',
    for: A_MINUTE,
    check: 'engine',
    status: 'degraded',
    raisedBy: 'either',
    text: ({ latency }) => `a ping of the engine takes ${latency} ms`,
  },
  {
    name: 'NoWorkers',
    severity: 'critical',
    for: A_MINUTE,
    check: 'workers',
    status: 'unhealthy',
    raisedBy: 'finding',
    text: () => 'no worker runs',
  },
  {
    name: 'TooFewWorkers',
    severity: 'warning',
    for: A_MINUTE,
    check: 'workers',
    status: 'degraded',
    raisedBy: 'finding',
    text: ({ details }) => `only ${details?.count} workers run`,
  },
  {
    // X170: one alert, and not one for each worker.
    name: 'WorkersUnknown',
    severity: 'warning',
    for: A_MINUTE,
    check: 'workers',
    status: 'degraded',
    raisedBy: 'failure',
    text: ({ error }) => `nobody knows which workers run: ${error}`,
  },
  {
    name: 'JobsWaitTooLong',
    severity: 'warning',
    check: 'queues',
    status: 'degraded',
    raisedBy: 'finding',
    text: ({ details }) => `a job has been due for ${details?.oldestWaiting} ms, longer than an hour`,
  },
  {
    name: 'DeadLetters',
    severity: 'warning',
    check: 'deadLetters',
    status: 'degraded',
    raisedBy: 'finding',
    text: ({ details }) => `${details?.count} dead letters wait`,
  },
  {
    name: 'DeadLettersTooMany',
    severity: 'error',
    word: 'high',
    check: 'deadLetters',
    status: 'unhealthy',
    raisedBy: 'finding',
    text: ({ details }) => `${details?.count} dead letters wait`,
  },
]

/**
 * Rules over document A's checks: the engine, workers, waiting jobs and dead letters, with the bands of `checkHealth`.
 *
 * @example
 * const rules = healthRules({ critical: ['data-deletion', 'webhook-dispatch', 'audit-export'] })
 */
export function healthRules(options: HealthRuleOptions = {}): readonly AlertRule[] {
  refuseUnknown(options, { critical: true }, 'healthRules')
  const { critical = [] } = options
  const overChecks = RULES.map(
    ({ check, status, raisedBy, text, ...rule }): AlertRule => ({
      ...rule,
      evaluate({ health }) {
        const found = health.checks[check]
        const isFailure = found.error !== undefined
        // A check that could not be made says nothing about what it would have found.
        if (raisedBy === 'finding' && isFailure) return null
        const isRaised = found.status === status && (raisedBy !== 'failure' || isFailure)
        return isRaised ? [breach({}, figureOf(found), text(found))] : NO_BREACH
      },
    }),
  )
  return critical.length === 0 ? overChecks : [...overChecks, criticalRule(new Set(critical))]
}

/** A168: `high`, and by type. */
function criticalRule(critical: ReadonlySet<string>): AlertRule {
  return {
    name: 'CriticalDeadLetters',
    severity: 'error',
    word: 'high',
    evaluate({ figures }) {
      if (!figures.ok) return null
      return Object.entries(figures.value.deadByType)
        .filter(([type]) => critical.has(type))
        .map(([type, count]) => breach({ type }, count, `${count} dead letters of the critical type ${type} wait`))
    },
  }
}

function breach(labels: Breach['labels'], value: number | null, text: string): Breach {
  return { labels, value, threshold: null, text }
}

function figureOf({ latency, details }: HealthStatus): number | null {
  return latency ?? details?.oldestWaiting ?? details?.count ?? null
}
