/** Document B's alert rules, as data over its key figures. */
import type { Figures } from '../figures/figures.ts'
import type { AlertRule, Breach } from './rule.ts'

export interface FigureLimits {
  /** Queued jobs, delayed ones included; 1000 unless told. */
  readonly queueDepth?: number
  /** For how long a due job may wait; an hour unless told. */
  readonly queueAgeMs?: number
  /** The least share of jobs that must complete; 0.95 unless told. */
  readonly successRate?: number
  /** Jobs that must have ended before the share means anything (X090); 20 unless told. */
  readonly processedMin?: number
  readonly deadLetterCount?: number
  /** For how long 95 of 100 attempts may run; 10 s unless told. */
  readonly latencyP95Ms?: number
  /** The same for single types, instead of the general one (X087). */
  readonly latencyP95MsByType?: Readonly<Record<string, number>>
}

export interface FigureAlert {
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

interface FigureRule {
  readonly metric: string
  readonly word: FigureAlert['severity']
  /** On which side of its threshold a value is bad. At the threshold it is good. */
  readonly bad: 'above' | 'below'
  /** What is to be compared. None: too little is known. */
  readonly measure: (figures: Figures, limits: Required<FigureLimits>) => readonly Measurement[]
  readonly text: (value: number, threshold: number) => string
}

const DEFAULTS: Required<FigureLimits> = Object.freeze({
  queueDepth: 1_000,
  queueAgeMs: 3_600_000,
  successRate: 0.95,
  processedMin: 20,
  deadLetterCount: 10,
  latencyP95Ms: 10_000,
  latencyP95MsByType: {},
})

const overall = (value: number, threshold: number): readonly Measurement[] => [{ labels: {}, value, threshold }]

const RULES: readonly FigureRule[] = [
  {
    metric: 'queue_depth',
    word: 'WARNING',
    bad: 'above',
    measure: (figures, limits) => overall(figures.queueDepth, limits.queueDepth),
    text: (value, threshold) => `${value} jobs are queued, more than ${threshold}`,
  },
  {
    metric: 'queue_age',
    word: 'WARNING',
    bad: 'above',
    measure: ({ queueAgeMs }, limits) => (queueAgeMs === null ? [] : overall(queueAgeMs, limits.queueAgeMs)),
    text: (value, threshold) => `a job has been due for ${value} ms, longer than ${threshold} ms`,
  },
  {
    metric: 'success_rate',
    word: 'ERROR',
    bad: 'below',
    measure: ({ successRate, processed }, limits) =>
      processed < limits.processedMin ? [] : overall(successRate, limits.successRate),
    text: (value, threshold) => `${percent(value)} of the jobs were completed, less than ${percent(threshold)}`,
  },
  {
    metric: 'dead_letter_count',
    word: 'ERROR',
    bad: 'above',
    measure: (figures, limits) => overall(figures.deadLetterCount, limits.deadLetterCount),
    text: (value, threshold) => `${value} dead letters wait, more than ${threshold}`,
  },
  {
    metric: 'latency_p95',
    word: 'WARNING',
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

function breachesOf(rule: FigureRule, figures: Figures, limits: Required<FigureLimits>): readonly Breach[] {
  const isBad = ({ value, threshold }: Measurement): boolean =>
    rule.bad === 'above' ? value > threshold : value < threshold
  return rule
    .measure(figures, limits)
    .filter(isBad)
    .map((one) => ({ ...one, text: textOf(rule, one) }))
}

function textOf({ text }: FigureRule, { labels, value, threshold }: Measurement): string {
  const said = text(value, threshold)
  return labels.type === undefined ? said : `${labels.type}: ${said}`
}

/**
 * Document B's rules: queue_depth, queue_age, success_rate, dead_letter_count and latency_p95.
 *
 * @example
 * const alerting = startAlerting(mill, { rules: figureRules({ queueDepth: 5_000 }), sinks: [logSink(log)] })
 */
export function figureRules(limits: FigureLimits = {}): readonly AlertRule[] {
  const all = { ...DEFAULTS, ...limits }
  return RULES.map((rule) => ({
    name: rule.metric,
    severity: rule.word === 'ERROR' ? 'error' : 'warning',
    word: rule.word,
    evaluate: ({ figures }) => (figures.ok ? breachesOf(rule, figures.value, all) : null),
  }))
}

/**
 * The same rules over one reading and without a memory: each that holds now.
 *
 * @example
 * for (const { severity, message } of checkAlerts(await figures.collectMetrics())) console.log(severity, message)
 */
export function checkAlerts(figures: Figures, limits: FigureLimits = {}): readonly FigureAlert[] {
  const all = { ...DEFAULTS, ...limits }
  return RULES.flatMap((rule) =>
    breachesOf(rule, figures, all).map(({ value, threshold, text }) => ({
      severity: rule.word,
      metric: rule.metric,
      value: value ?? 0,
      threshold: threshold ?? 0,
      message: text,
    })),
  )
}
