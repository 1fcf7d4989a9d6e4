/** Rules over the health checks, and over dead letters of critical types. */
import { refuseUnknown } from '../../job/known-options.ts'
import {
  DEAD_LETTERS_DEFAULT,
  type Health,
  type HealthLimits,
  type HealthStatus,
  type HealthWord,
  LATENCY_MS_MAX,
  MIN_WORKERS_DEFAULT,
  reasonText,
  WAITING_MS_MAX,
} from '../health.ts'
import type { AlertRule, Breach } from './rule.ts'
import { runbookEntry } from './runbook.ts'

/** Give the same limits as to `checkHealth`; the defaults are the same too. */
export interface HealthRuleOptions extends HealthLimits {
  /** Types for which one dead letter is an error; default: none. */
  readonly critical?: readonly string[]
}

interface HealthRule extends Omit<AlertRule, 'evaluate' | 'runbook'> {
  readonly check: keyof Health['checks']
  /** The check's status that raises it. */
  readonly status: HealthWord
  /** A check that could not be made, what a check found, or both. */
  readonly raisedBy: 'failure' | 'finding' | 'either'
  /** From where on it is raised; null when it is not a matter of numbers. */
  readonly threshold: (found: HealthStatus, limits: Required<HealthLimits>) => number | null
  readonly unit?: Breach['unit']
}

/** A start, or a pause of a minute, is not an alert. */
const A_MINUTE = '1m'
const NO_THRESHOLD = (): null => null

const RULES: readonly HealthRule[] = [
  {
    name: 'EngineDown',
    severity: 'critical',
    check: 'engine',
    status: 'unhealthy',
    raisedBy: 'either',
    threshold: NO_THRESHOLD,
  },
  {
    name: 'EngineSlow',
    severity: 'warning',
    for: A_MINUTE,
    check: 'engine',
    status: 'degraded',
    raisedBy: 'either',
    threshold: () => LATENCY_MS_MAX,
    unit: 'ms',
  },
  {
    name: 'NoWorkers',
    severity: 'critical',
    about: 'workers',
    for: A_MINUTE,
    check: 'workers',
    status: 'unhealthy',
    raisedBy: 'finding',
    threshold: (_, { minWorkers }) => minWorkers,
  },
  {
    name: 'TooFewWorkers',
    severity: 'warning',
    about: 'workers',
    for: A_MINUTE,
    check: 'workers',
    status: 'degraded',
    raisedBy: 'finding',
    threshold: (_, { minWorkers }) => minWorkers,
  },
  {
    // One alert, not one per worker.
    name: 'WorkersUnknown',
    severity: 'warning',
    about: 'workers',
    for: A_MINUTE,
    check: 'workers',
    status: 'degraded',
    raisedBy: 'failure',
    threshold: NO_THRESHOLD,
  },
  {
    name: 'JobsWaitTooLong',
    severity: 'warning',
    about: 'jobs',
    check: 'queues',
    status: 'degraded',
    raisedBy: 'finding',
    threshold: ({ details }) => (details?.unclaimed === undefined ? WAITING_MS_MAX : null),
    unit: 'ms',
  },
  {
    name: 'DeadLetters',
    severity: 'warning',
    about: 'dead-letters',
    check: 'deadLetters',
    status: 'degraded',
    raisedBy: 'finding',
    threshold: () => 1,
  },
  {
    name: 'DeadLettersTooMany',
    severity: 'error',
    severityLabel: 'high',
    about: 'dead-letters',
    check: 'deadLetters',
    status: 'unhealthy',
    raisedBy: 'finding',
    threshold: (_, { deadLetterThreshold }) => deadLetterThreshold,
  },
]

/** Null unless the rule is raised by the checks. */
function breachOf(
  { check, status, raisedBy, threshold, unit }: HealthRule,
  health: Health,
  limits: HealthLimits,
): Breach | null {
  const found = health.checks[check]
  const isFailure = found.error !== undefined
  const isMeant = raisedBy === 'either' || isFailure === (raisedBy === 'failure')
  if (found.status !== status || !isMeant) return null
  const { minWorkers = MIN_WORKERS_DEFAULT, deadLetterThreshold = DEAD_LETTERS_DEFAULT } = limits
  const limit = threshold(found, { minWorkers, deadLetterThreshold })
  return {
    labels: {},
    value: measuredValue(found),
    threshold: limit,
    ...(unit !== undefined && limit !== null && { unit }),
    text: reasonText(check, found, limits),
  }
}

/**
 * Rules over the checks of `checkHealth`: the engine, workers, waiting jobs and dead letters.
 *
 * @example
 * const rules = healthRules({ critical: ['data-deletion', 'webhook-dispatch', 'audit-export'] })
 */
export function healthRules(options: HealthRuleOptions = {}): readonly AlertRule[] {
  refuseUnknown(options, { critical: true, minWorkers: true, deadLetterThreshold: true }, 'healthRules')
  const { critical = [], ...limits } = options
  const overChecks = RULES.map((rule): AlertRule => {
    const { check, status: _, raisedBy, threshold: __, unit: ___, ...facts } = rule
    return {
      ...facts,
      runbook: runbookEntry(rule.name),
      evaluate({ health }) {
        // A failed check says nothing about what it would have found.
        if (raisedBy === 'finding' && health.checks[check].error !== undefined) return null
        const found = breachOf(rule, health, limits)
        return found === null ? [] : [found]
      },
    }
  })
  return critical.length === 0 ? overChecks : [...overChecks, criticalRule(new Set(critical))]
}

function criticalRule(critical: ReadonlySet<string>): AlertRule {
  return {
    name: 'CriticalDeadLetters',
    severity: 'error',
    severityLabel: 'high',
    about: 'dead-letters',
    runbook: runbookEntry('CriticalDeadLetters'),
    evaluate({ stats }) {
      if (!stats.ok) return null
      return Object.entries(stats.value.deadByType)
        .filter(([type]) => critical.has(type))
        .map(([type, count]) => ({
          labels: { type },
          value: count,
          threshold: 1,
          text: `${count} ${count === 1 ? 'dead letter' : 'dead letters'} of the critical type ${type} ${count === 1 ? 'waits' : 'wait'}`,
        }))
    },
  }
}

function measuredValue({ latency, details }: HealthStatus): number | null {
  const unclaimed = Object.values(details?.unclaimed ?? {})
  if (unclaimed.length > 0) return unclaimed.reduce((sum, count) => sum + count, 0)
  return latency ?? details?.oldestWaiting ?? details?.count ?? null
}
