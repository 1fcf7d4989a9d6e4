import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from '../../../src/index.ts'
import type { Stats } from '../../../src/observe/index.ts'
import { startAlerting } from '../../../src/observe/index.ts'
import { openForTest } from '../../../src/testing/index.ts'
import { firesAndResolves, named, STATS, sampleOf, withStats } from '../../../test/fixtures/alerting.ts'
import { checkAlerts, conversationRules } from './alert-rules.ts'

// B157 X087 X088
test('a job is slow by its own budget: uploads may take 30 s, other jobs may not', async () => {
  await using t = await openForTest()
  const { mill, clock } = t
  const jobs = ['sanitize_ai_validation', 'extract_learning', 'mine_upload', 'other'].map((type) =>
    defineJob({ type, run: () => clock.sleep(12_000) }),
  )
  const alerting = startAlerting(mill, { rules: conversationRules(), clock })
  const worker = await mill.work(jobs)
  for (const job of jobs) await mill.enqueue(job, null)
  await clock.advance('20s')
  await alerting.evaluate()
  const slow = alerting.current().map(({ rule, labels, threshold }) => [rule, labels.type, threshold])
  assert.deepEqual(slow.toSorted(), [
    ['latency_p95', 'extract_learning', 5_000],
    ['latency_p95', 'other', 10_000],
    ['latency_p95', 'sanitize_ai_validation', 2_000],
  ])
  await worker.stop()
  await alerting.stop()
})

const ended = (latencyP95Ms: number) => ({ ...STATS, latencyP95Ms })

// B153 B154 B155 B156 B157 X090
test('the rules fire beyond their limits, not at them', () => {
  const processed = 1_000
  const cases: readonly (readonly [string, Partial<Stats>, Partial<Stats>])[] = [
    ['queue_depth', { queueDepth: 1_000 }, { queueDepth: 1_001 }],
    ['queue_age', { queueAgeMs: 3_600_000 }, { queueAgeMs: 3_600_001 }],
    ['success_rate', { successRate: 0.95, processed }, { successRate: 0.949, processed }],
    ['dead_letter_count', { deadLetterCount: 10 }, { deadLetterCount: 11 }],
    ['latency_p95', { byType: { t: ended(10_000) } }, { byType: { t: ended(10_001) } }],
  ]
  const rules = conversationRules()
  assert.deepEqual(
    rules.map(({ name, severityLabel }) => `${name} ${severityLabel}`),
    [
      'queue_depth WARNING',
      'queue_age WARNING',
      'success_rate ERROR',
      'dead_letter_count ERROR',
      'latency_p95 WARNING',
    ],
  )
  for (const [name, good, bad] of cases) firesAndResolves(named(rules, name), withStats(good), withStats(bad))
  const shown = cases.map(([name, , bad]) => {
    const rule = named(rules, name)
    const [breach] = rule.evaluate(withStats(bad)) ?? []
    return [name, rule.about, breach?.threshold, breach?.unit]
  })
  assert.deepEqual(shown, [
    ['queue_depth', 'jobs', 1_000, undefined],
    ['queue_age', 'jobs', 3_600_000, 'ms'],
    ['success_rate', 'jobs', 0.95, 'share'],
    ['dead_letter_count', 'dead-letters', 10, undefined],
    ['latency_p95', 'jobs', 10_000, 'ms'],
  ])
})

// X090
test('a share of too few jobs means nothing', () => {
  const rule = named(conversationRules(), 'success_rate')
  const of = (processed: number) => rule.evaluate(withStats({ successRate: 0, processed }))?.length
  assert.deepEqual([of(1), of(19), of(20)], [0, 0, 1])
  const own = named(conversationRules({ processedMin: 1 }), 'success_rate')
  assert.equal(own.evaluate(withStats({ successRate: 0, processed: 1 }))?.length, 1)
})

// B158
test('an alert has severity, metric, value, threshold and message', () => {
  const alerts = checkAlerts({ ...STATS, queueDepth: 1_001, successRate: 0.5, processed: 20 })
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
  assert.deepEqual(checkAlerts(STATS), [])
})

test('unreadable stats neither raise nor resolve an alert', () => {
  const unknown = sampleOf({ stats: { ok: false, error: 'away' } })
  for (const rule of conversationRules()) assert.equal(rule.evaluate(unknown), null, rule.name)
})

test('custom limits replace the defaults one by one', () => {
  const rules = conversationRules({ queueDepth: 5 })
  firesAndResolves(named(rules, 'queue_depth'), withStats({ queueDepth: 5 }), withStats({ queueDepth: 6 }))
  firesAndResolves(named(rules, 'dead_letter_count'), withStats({}), withStats({ deadLetterCount: 11 }))
})
