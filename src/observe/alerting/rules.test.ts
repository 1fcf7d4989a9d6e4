/** Every rule of documents A, B and D, fired and resolved. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Beat } from '../../engine/presence.ts'
import type { Figures } from '../figures/figures.ts'
import { healthOf } from '../health/health.ts'
import { ALARMS } from '../watch/alarms.ts'
import type { Reading } from '../watch/watch.ts'
import { Evaluator } from './evaluator.ts'
import { checkAlerts, figureRules } from './figure-rules.ts'
import { healthRules } from './health-rules.ts'
import type { AlertRule, Sample } from './rule.ts'
import { watchRules } from './watch-rules.ts'

const FIGURES: Figures = {
  windowMs: 3_600_000,
  queueDepth: 0,
  due: 0,
  delayed: 0,
  inProgressCount: 0,
  deadLetterCount: 0,
  deadByType: {},
  queueAgeMs: 0,
  processingRate: 0,
  successRate: 1,
  attemptFailureRate: 0,
  latencyP50Ms: 0,
  latencyP95Ms: 0,
  latencyP99Ms: 0,
  leaseExpiryRate: 0,
  processed: 0,
  completed: 0,
  byType: {},
}
const ended = (latencyP95Ms: number) => ({ ...FIGURES, latencyP95Ms })

const WELL = healthOf({
  engine: { status: 'healthy', latency: 1 },
  workers: { status: 'healthy', details: { count: 1 } },
  queues: { status: 'healthy', details: { count: 0, oldestWaiting: null } },
  deadLetters: { status: 'healthy', details: { count: 0 } },
})
const READING: Reading = {
  atMs: 1_000_000,
  workers: { ok: true, value: [] },
  lags: { ok: true, value: [] },
  pending: { ok: true, value: [] },
}

const sampleOf = (given: Partial<Sample>): Sample => ({
  atMs: 0,
  figures: { ok: true, value: FIGURES },
  health: WELL,
  reading: READING,
  ...given,
})
const withFigures = (given: Partial<Figures>): Sample =>
  sampleOf({ figures: { ok: true, value: { ...FIGURES, ...given } } })

const named = (rules: readonly AlertRule[], name: string): AlertRule => {
  const rule = rules.find((one) => one.name === name)
  assert.ok(rule, `there is no rule ${name}`)
  return rule
}

/** It is quiet over `good`, fires over `bad` (after its time), and is resolved over `good`. */
function firesAndResolves(rule: AlertRule, good: Sample, bad: Sample): void {
  const evaluator = new Evaluator([rule], 3_600_000)
  const at = (minutes: number, sample: Sample) =>
    evaluator.step({ ...sample, atMs: minutes * 60_000 }).map(({ status, alert }) => `${status} ${alert.rule}`)
  assert.deepEqual(at(0, good), [], `${rule.name} is quiet`)
  const fired = [...at(1, bad), ...at(2, bad)]
  assert.deepEqual(fired, [`firing ${rule.name}`])
  assert.deepEqual(at(3, good), [`resolved ${rule.name}`])
}

// B153 B154 B155 B156 B157 X090
test("document B's rules hold beyond their limits, not at them", () => {
  const processed = 1_000
  const cases: readonly (readonly [string, Partial<Figures>, Partial<Figures>])[] = [
    ['queue_depth', { queueDepth: 1_000 }, { queueDepth: 1_001 }],
    ['queue_age', { queueAgeMs: 3_600_000 }, { queueAgeMs: 3_600_001 }],
    ['success_rate', { successRate: 0.95, processed }, { successRate: 0.949, processed }],
    ['dead_letter_count', { deadLetterCount: 10 }, { deadLetterCount: 11 }],
    ['latency_p95', { byType: { t: ended(10_000) } }, { byType: { t: ended(10_001) } }],
  ]
  const rules = figureRules()
  assert.deepEqual(
    rules.map(({ name, word }) => `${name} ${word}`),
    [
      'queue_depth WARNING',
      'queue_age WARNING',
      'success_rate ERROR',
      'dead_letter_count ERROR',
      'latency_p95 WARNING',
    ],
  )
  for (const [name, good, bad] of cases) firesAndResolves(named(rules, name), withFigures(good), withFigures(bad))
})

// X090
test('a share of too few jobs means nothing', () => {
  const rule = named(figureRules(), 'success_rate')
  const of = (processed: number) => rule.evaluate(withFigures({ successRate: 0, processed }))?.length
  assert.deepEqual([of(1), of(19), of(20)], [0, 0, 1])
  const own = named(figureRules({ processedMin: 1 }), 'success_rate')
  assert.equal(own.evaluate(withFigures({ successRate: 0, processed: 1 }))?.length, 1)
})

// B158
test('an alert has severity, metric, value, threshold and message', () => {
  const alerts = checkAlerts({ ...FIGURES, queueDepth: 1_001, successRate: 0.5, processed: 20 })
  assert.deepEqual(alerts, [
    {
      severity: 'WARNING',
      metric: 'queue_depth',
      value: 1_001,
      threshold: 1_000,
      message: '1001 jobs are queued, more than 1000',
    },
    {
      severity: 'ERROR',
      metric: 'success_rate',
      value: 0.5,
      threshold: 0.95,
      message: '50 % of the jobs were completed, less than 95 %',
    },
  ])
  assert.deepEqual(checkAlerts(FIGURES), [])
})

test('figures that cannot be read neither raise nor end an alert', () => {
  const unknown = sampleOf({ figures: { ok: false, error: 'away' } })
  const rules = [...figureRules(), named(healthRules({ critical: ['t'] }), 'CriticalDeadLetters')]
  for (const rule of rules) assert.equal(rule.evaluate(unknown), null, rule.name)
})

test('limits of your own take the place of the document, field by field', () => {
  const rules = figureRules({ queueDepth: 5 })
  firesAndResolves(named(rules, 'queue_depth'), withFigures({ queueDepth: 5 }), withFigures({ queueDepth: 6 }))
  firesAndResolves(named(rules, 'dead_letter_count'), withFigures({}), withFigures({ deadLetterCount: 11 }))
})

// A156 A157 A158 A159 A160 A161 A162 A163 X070 X170
test("every band of document A's checks has a rule", () => {
  const health = (checks: Partial<typeof WELL.checks>): Sample =>
    sampleOf({ health: healthOf({ ...WELL.checks, ...checks }) })
  const error = 'connection refused'
  const cases: Readonly<Record<string, Partial<typeof WELL.checks>>> = {
    EngineDown: { engine: { status: 'unhealthy', error } },
    EngineSlow: { engine: { status: 'degraded', latency: 100 } },
    NoWorkers: { workers: { status: 'unhealthy', details: { count: 0 } } },
    TooFewWorkers: { workers: { status: 'degraded', details: { count: 1 } } },
    WorkersUnknown: { workers: { status: 'degraded', error } },
    JobsWaitTooLong: { queues: { status: 'degraded', details: { count: 1, oldestWaiting: 3_600_001 } } },
    DeadLetters: { deadLetters: { status: 'degraded', details: { count: 1 } } },
    DeadLettersTooMany: { deadLetters: { status: 'unhealthy', details: { count: 100 } } },
  }
  const rules = healthRules()
  assert.deepEqual(rules.map(({ name }) => name).toSorted(), Object.keys(cases).toSorted())
  for (const [name, bad] of Object.entries(cases)) firesAndResolves(named(rules, name), sampleOf({}), health(bad))
  const away = health({ workers: { status: 'degraded', error }, deadLetters: { status: 'unhealthy', error } })
  for (const name of ['NoWorkers', 'TooFewWorkers', 'DeadLettersTooMany']) {
    assert.equal(named(rules, name).evaluate(away), null, `${name} cannot be known`)
  }
  const few = health({ workers: { status: 'degraded', details: { count: 1 } } })
  assert.deepEqual(named(rules, 'WorkersUnknown').evaluate(few), [], 'a few are known')
})

// A167 A168 X014
test('a dead letter of a critical type is high, whatever the others are', () => {
  const rule = named(healthRules({ critical: ['data-deletion', 'audit-export'] }), 'CriticalDeadLetters')
  assert.deepEqual([rule.severity, rule.word], ['error', 'high'])
  firesAndResolves(
    rule,
    withFigures({ deadByType: { 'quota-check': 5 } }),
    withFigures({ deadByType: { 'quota-check': 5, 'audit-export': 1 } }),
  )
})

const beat: Beat = {
  type: 'payout',
  instance: 'payout-1',
  status: 'RUNNING',
  atMs: 1_000_000,
  lastJobAtMs: 0,
  lag: 1,
  stoppingSinceMs: null,
}
const worker = { worker: 'payout', instance: 'payout-1', seenAtMs: 1_000_000, beat, knownSinceMs: 0, retrying: 0 }
const workers = (given: Partial<typeof worker> | null): Pick<Reading, 'workers'> => {
  return { workers: { ok: true, value: given === null ? [] : [{ ...worker, ...given }] } }
}
const lag = (behind: number): Pick<Reading, 'lags'> => {
  return { lags: { ok: true, value: [{ group: 'g', topic: 't', lag: behind }] } }
}
const pending = (topic: string): Pick<Reading, 'pending'> => ({ pending: { ok: true, value: [{ topic, count: 1 }] } })

// D46 D47 D61 D62 D63 D64 D65 X159 X170
test("document D's rules are those of evaluateAlarms, fired and resolved", () => {
  const rules = watchRules({
    lagLimits: () => ({ warning: 10, critical: 20 }),
    isFinancial: (topic) => topic === 'money.dlq',
    expected: ['payout'],
  })
  const busy = { beat: { ...beat, lastJobAtMs: 1_000_000 } }
  const bad: Readonly<Record<string, Partial<Reading>>> = {
    WorkerHeartbeatMissing: workers({ seenAtMs: 939_999 }),
    WorkerAbsent: workers(null),
    WorkerStuckProcessing: workers({}),
    WorkerShutdownOverdue: workers({ beat: { ...beat, status: 'SHUTTING_DOWN', stoppingSinceMs: 879_999 } }),
    WorkerPresenceUnreachable: { workers: { ok: false, error: 'gone' } },
    DLQFinancial: pending('money.dlq'),
    DLQNonFinancial: pending('mail.dlq'),
    ConsumerLagCritical: lag(21),
    ConsumerLagWarning: lag(11),
  }
  assert.deepEqual(rules.map(({ name }) => name).toSorted(), Object.keys(bad).toSorted())
  const reading = (given: Partial<Reading>) => sampleOf({ reading: { ...READING, ...workers(busy), ...given } })
  for (const [name, given] of Object.entries(bad)) firesAndResolves(named(rules, name), reading({}), reading(given))
  for (const { name, word, severity } of rules) {
    const expected = ALARMS[name as keyof typeof ALARMS].severity
    assert.deepEqual([word, severity], [expected, expected.toLowerCase()], name)
  }
  const away = reading({ workers: { ok: false, error: 'gone' } })
  assert.equal(named(rules, 'WorkerHeartbeatMissing').evaluate(away), null)
  assert.equal(named(rules, 'DLQFinancial').evaluate(sampleOf({ reading: null })), null)
})
