/** The alert rules of the conversation pipeline over the rolling stats. */
import type { AlertRule, Breach } from '../../../src/observe/alerts/rule.ts'
import { runbookEntry } from '../../../src/observe/alerts/runbook.ts'
import type { Stats } from '../../../src/observe/stats/stats.ts'

/** How long 95 of 100 runs of each job may take. */
export const CONVERSATION_LATENCY_MS: Readonly<Record<string, number>> = Object.freeze({
  sanitize_ai_validation: 2_000,
  extract_learning: 5_000,
  mine_upload: 30_000,
})

export interface StatsLimits {
  /** Queued jobs, including delayed ones; default: 1000. */
  readonly queueDepth?: number
  /** How long a due job may wait; default: an hour. */
  readonly queueAgeMs?: number
  /** The smallest share of jobs that must complete; default: 0.95. */
  readonly successRate?: number
  /** How many jobs must have ended before the success rate counts; default: 20. */
  readonly processedMin?: number
  /** Default: 10. */
  readonly deadLetterCount?: number
  /** How long 95 of 100 attempts may run; default: 10 s. */
  readonly latencyP95Ms?: number
  /** The same for single types; default: `CONVERSATION_LATENCY_MS`. */
  readonly latencyP95MsByType?: Readonly<Record<string, number>>
}

/** An alert in the pipeline's own format. */
export interface ConversationAlert {
  readonly severity: 'WARNING' | 'ERROR'
  readonly metric: string
  readonly value: number
  readonly threshold: number
  readonly message: string
}

interface Measurement {
  readonly labels: Breach['labels']
  readonly value: number
  readonly threshold: number
}

interface StatsRule {
  readonly metric: string
  /** The heading of its entry in the runbook. */
  readonly entry: string
  readonly severity: ConversationAlert['severity']
  /** The bad side of the threshold. The threshold itself is good. */
  readonly bad: 'above' | 'below'
  /** Values to compare; none when too little is known. */
  readonly measure: (stats: Stats, limits: Required<StatsLimits>) => readonly Measurement[]
  readonly unit?: Breach['unit']
  readonly text: (value: number, threshold: number) => string
}

const DEFAULTS: Required<StatsLimits> = Object.freeze({
  queueDepth: 1_000,
  queueAgeMs: 3_600_000,
  successRate: 0.95,
  processedMin: 20,
  deadLetterCount: 10,
  latencyP95Ms: 10_000,
  latencyP95MsByType: CONVERSATION_LATENCY_MS,
})

const overall = (value: number, threshold: number): readonly Measurement[] => [{ labels: {}, value, threshold }]

const RULES: readonly StatsRule[] = [
  {
    metric: 'queue_depth',
    entry: 'QueueDepth',
    severity: 'WARNING',
    bad: 'above',
    measure: (stats, limits) => overall(stats.queueDepth, limits.queueDepth),
    text: (value, threshold) => `${value} jobs are queued, more than ${threshold}`,
  },
  {
    metric: 'queue_age',
    entry: 'JobsWaitTooLong',
    unit: 'ms',
    severity: 'WARNING',
    bad: 'above',
    measure: ({ queueAgeMs }, limits) => (queueAgeMs === null ? [] : overall(queueAgeMs, limits.queueAgeMs)),
    text: (value, threshold) => `a job has been due for ${value} ms, longer than ${threshold} ms`,
  },
  {
    metric: 'success_rate',
    entry: 'SuccessRate',
    unit: 'share',
    severity: 'ERROR',
    bad: 'below',
    measure: ({ successRate, processed }, limits) =>
      processed < limits.processedMin ? [] : overall(successRate, limits.successRate),
    text: (value, threshold) => `${percent(value)} of the jobs were completed, less than ${percent(threshold)}`,
  },
  {
    metric: 'dead_letter_count',
    entry: 'DeadLettersTooMany',
    severity: 'ERROR',
    bad: 'above',
    measure: (stats, limits) => overall(stats.deadLetterCount, limits.deadLetterCount),
    text: (value, threshold) => `${value} dead letters wait, more than ${threshold}`,
  },
  {
    metric: 'latency_p95',
    entry: 'LatencyP95',
    unit: 'ms',
    severity: 'WARNING',
    bad: 'above',
    measure: ({ byType }, { latencyP95Ms, latencyP95MsByType }) =>
      Object.entries(byType).map(([type, ended]) => ({
        labels: { type },
        value: ended.latencyP95Ms,
        threshold: latencyP95MsByType[type] ?? latencyP95Ms,
      })),
    text: (value, threshold) => `5 of 100 attempts run for ${value} ms or longer, above ${threshold} ms`,
  },
]

function percent(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`
}

function breachesOf(rule: StatsRule, stats: Stats, limits: Required<StatsLimits>): readonly Breach[] {
  const isBad = ({ value, threshold }: Measurement): boolean =>
    rule.bad === 'above' ? value > threshold : value < threshold
  return rule
    .measure(stats, limits)
    .filter(isBad)
    .map((one) => ({ ...one, ...(rule.unit !== undefined && { unit: rule.unit }), text: textOf(rule, one) }))
}

function textOf({ text }: StatsRule, { labels, value, threshold }: Measurement): string {
  const said = text(value, threshold)
  return labels.type === undefined ? said : `${labels.type}: ${said}`
}

/**
 * Rules for `startAlerting`: queue_depth, queue_age, success_rate, dead_letter_count and latency_p95.
 *
 * @example
 * const alerting = startAlerting(mill, { rules: conversationRules({ queueDepth: 5_000 }), sinks: [logSink(log)] })
 */
export function conversationRules(limits: StatsLimits = {}): readonly AlertRule[] {
  const all = { ...DEFAULTS, ...limits }
  return RULES.map((rule) => ({
    name: rule.metric,
    severity: rule.severity === 'ERROR' ? 'error' : 'warning',
    severityLabel: rule.severity,
    about: rule.metric === 'dead_letter_count' ? 'dead-letters' : 'jobs',
    runbook: runbookEntry(rule.entry),
    evaluate: ({ stats }) => (stats.ok ? breachesOf(rule, stats.value, all) : null),
  }))
}

/**
 * The same rules over one reading, without memory: every alert that holds now.
 *
 * @example
 * for (const { severity, message } of checkAlerts(await stats.collect())) console.log(severity, message)
 */
export function checkAlerts(stats: Stats, limits: StatsLimits = {}): readonly ConversationAlert[] {
  const all = { ...DEFAULTS, ...limits }
  return RULES.flatMap((rule) =>
    breachesOf(rule, stats, all).map(({ value, threshold, text }) => ({
      severity: rule.severity,
      metric: rule.metric,
      value: value ?? 0,
      threshold: threshold ?? 0,
      message: text,
    })),
  )
}
