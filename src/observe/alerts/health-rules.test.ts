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
