/** Rules over the health checks, and over dead letters of critical types. */
import { refuseUnknown } from '../../job/known-options.ts'
import type { Health, HealthStatus, HealthWord } from '../health.ts'
import type { AlertRule, Breach } from './rule.ts'

export interface HealthRuleOptions {
  /** Types for which one dead letter is an error; default: none. */
  readonly critical?: readonly string[]
}

interface HealthRule extends Omit<AlertRule, 'evaluate'> {
  readonly check: keyof Health['checks']
  /** The check's status that raises it. */
  readonly status: HealthWord
  /** A check that could not be made, what a check found, or both. */
  readonly raisedBy: 'failure' | 'finding' | 'either'
  readonly text: (status: HealthStatus) => string
}

/** A start, or a pause of a minute, is not an alert. */
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
    // One alert, not one per worker.
    name: 'WorkersUnknown',
    severity: 'warning',
    for: A_MINUTE,
    check: 'workers',
    status: 'degraded',
    raisedBy: 'failure',
    text: ({ error }) => `the list of workers cannot be read: ${error}`,
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
    severityLabel: 'high',
    check: 'deadLetters',
    status: 'unhealthy',
    raisedBy: 'finding',
    text: ({ details }) => `${details?.count} dead letters wait`,
  },
]

/**
 * Rules over the checks of `checkHealth`: the engine, workers, waiting jobs and dead letters.
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
        // A failed check says nothing about what it would have found.
        if (raisedBy === 'finding' && isFailure) return null
        const isRaised = found.status === status && (raisedBy !== 'failure' || isFailure)
        return isRaised ? [breach({}, measuredValue(found), text(found))] : []
      },
    }),
  )
  return critical.length === 0 ? overChecks : [...overChecks, criticalRule(new Set(critical))]
}

function criticalRule(critical: ReadonlySet<string>): AlertRule {
  return {
    name: 'CriticalDeadLetters',
    severity: 'error',
    severityLabel: 'high',
    evaluate({ stats }) {
      if (!stats.ok) return null
      return Object.entries(stats.value.deadByType)
        .filter(([type]) => critical.has(type))
        .map(([type, count]) => breach({ type }, count, `${count} dead letters of the critical type ${type} wait`))
    },
  }
}

function breach(labels: Breach['labels'], value: number | null, text: string): Breach {
  return { labels, value, threshold: null, text }
}

function measuredValue({ latency, details }: HealthStatus): number | null {
  return latency ?? details?.oldestWaiting ?? details?.count ?? null
}
