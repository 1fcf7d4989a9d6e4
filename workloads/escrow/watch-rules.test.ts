import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Beat } from '../../src/engine/presence.ts'
import { firesAndResolves, named, sampleOf } from '../../test/fixtures/alerting.ts'
import { ALARMS, watchRules } from './alarms.ts'
import type { Reading } from './watch.ts'

const READING: Reading = {
  atMs: 1_000_000,
  workers: { ok: true, value: [] },
  lags: { ok: true, value: [] },
  pending: { ok: true, value: [] },
}

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
test('every alarm is a rule that fires and resolves', () => {
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
  const about = Object.fromEntries(rules.map((rule) => [rule.name, rule.about]))
  assert.deepEqual(
    [about.WorkerAbsent, about.DLQFinancial, about.ConsumerLagCritical],
    ['workers', 'dead-letters', 'topics'],
  )
  const [behind] = named(rules, 'ConsumerLagCritical').evaluate(reading(bad.ConsumerLagCritical ?? {})) ?? []
  assert.deepEqual([behind?.value, behind?.threshold], [21, 20])
  for (const { name, severityLabel, severity } of rules) {
    const expected = ALARMS[name as keyof typeof ALARMS].severity
    assert.deepEqual([severityLabel, severity], [expected.toUpperCase(), expected], name)
  }
  const away = reading({ workers: { ok: false, error: 'gone' } })
  assert.equal(named(rules, 'WorkerHeartbeatMissing').evaluate(away), null)
  assert.equal(named(rules, 'DLQFinancial').evaluate(sampleOf<Reading>({ reading: null })), null)
})
