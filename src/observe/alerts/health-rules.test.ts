import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firesAndResolves, named, sampleOf, WELL, withStats } from '../../../test/fixtures/alerting.ts'
import { healthOf } from '../health.ts'
import { healthRules } from './health-rules.ts'
import type { Sample } from './rule.ts'

// A156 A157 A158 A159 A160 A161 A162 A163 X070 X170
test('every bad status of a health check has a rule', () => {
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
  assert.deepEqual([rule.severity, rule.severityLabel], ['error', 'high'])
  firesAndResolves(
    rule,
    withStats({ deadByType: { 'quota-check': 5 } }),
    withStats({ deadByType: { 'quota-check': 5, 'audit-export': 1 } }),
  )
})

test('unreadable stats neither raise nor resolve an alert', () => {
  const rule = named(healthRules({ critical: ['t'] }), 'CriticalDeadLetters')
  assert.equal(rule.evaluate(sampleOf({ stats: { ok: false, error: 'away' } })), null)
})

test('an alert says its threshold and what it is about, and a status says its reasons', () => {
  const limits = { minWorkers: 3, deadLetterThreshold: 20 }
  const bad = healthOf({
    engine: { status: 'degraded', latency: 140 },
    workers: { status: 'degraded', details: { count: 1 } },
    queues: { status: 'degraded', details: { count: 1, oldestWaiting: 7_200_000 } },
    deadLetters: { status: 'unhealthy', details: { count: 25 } },
  })
  const rules = healthRules(limits)
  const raised = rules.flatMap((rule) =>
    (rule.evaluate(sampleOf({ health: bad })) ?? []).map(({ value, threshold, unit, text }) => [
      rule.about,
      value,
      threshold,
      unit,
      text,
    ]),
  )
  assert.deepEqual(raised, [
    [undefined, 140, 100, 'ms', 'a ping of the engine takes 140 ms; the limit is 100 ms'],
    ['workers', 1, 3, undefined, 'only 1 worker runs; 3 are expected'],
    ['jobs', 7_200_000, 3_600_000, 'ms', 'a job has been due for 2h, longer than an hour'],
    ['dead-letters', 25, 20, undefined, '25 dead letters wait; the limit is 20'],
  ])
  const { reasons } = healthOf(bad.checks, limits)
  assert.deepEqual(
    reasons.map(({ text }) => text),
    raised.map(([, , , , text]) => text),
  )
  assert.deepEqual(
    reasons.map(({ check }) => check),
    ['engine', 'workers', 'queues', 'deadLetters'],
  )
  const failed = healthOf({ ...WELL.checks, deadLetters: { status: 'unhealthy', error: 'away' } })
  assert.deepEqual(failed.reasons, [{ check: 'deadLetters', text: 'the dead letters cannot be counted: away' }])
  assert.deepEqual(WELL.reasons, [])
})
