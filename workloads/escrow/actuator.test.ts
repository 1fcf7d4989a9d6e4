import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HealthStatus, healthOf } from '../../src/observe/health.ts'
import {
  type ActuatorHealth,
  actuatorHealth,
  type Connectivity,
  type WatchHealthRules,
  watchHealth,
  withComponents,
} from './actuator.ts'
import type { WatchedWorker } from './conditions.ts'
import type { Reading } from './watch.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const up: Connectivity = { ok: true, value: { latencyMs: 3 } }
const rules: WatchHealthRules = { lagLimits: () => ({ warning: 100, critical: 500 }) }

const worker = (name: string, seenAtMs = NOW_MS): WatchedWorker => ({
  worker: name,
  instance: `${name}-1`,
  seenAtMs,
  beat: null,
  knownSinceMs: seenAtMs,
  retrying: 0,
})

const reading = (given: Partial<Reading> = {}): Reading => ({
  atMs: NOW_MS,
  workers: { ok: true, value: [worker('payout-executor'), worker('refund-executor')] },
  lags: { ok: true, value: [] },
  pending: { ok: true, value: [] },
  ...given,
})

const away = { ok: false, error: 'away' } as const

test('all is well', () => {
  const components = watchHealth(reading(), up, rules)
  assert.deepEqual(
    Object.values(components).map(({ status }) => status),
    ['UP', 'UP', 'UP', 'UP'],
  )
})

// D57
test('a broker that cannot be reached is down', () => {
  assert.deepEqual(watchHealth(reading(), away, rules).kafka, { status: 'DOWN', details: { error: 'away' } })
  assert.deepEqual(watchHealth(reading(), up, rules).kafka, { status: 'UP', details: { latencyMs: 3 } })
})

// D58
test('every group has an entry with its lag', () => {
  const lags = {
    ok: true,
    value: [
      { group: 'payout-executor', topic: 'escrow.commands', lag: 3 },
      { group: 'post-scheduler', topic: 'delivery.commands', lag: 101 },
      { group: 'post-scheduler', topic: 'deal.events', lag: 0 },
    ],
  } as const
  assert.deepEqual(watchHealth(reading({ lags }), up, rules).consumerLag, {
    status: 'DEGRADED',
    details: {
      'payout-executor': { 'escrow.commands': { lag: 3, severity: 'OK' } },
      'post-scheduler': {
        'delivery.commands': { lag: 101, severity: 'WARNING' },
        'deal.events': { lag: 0, severity: 'OK' },
      },
    },
  })
})

// D59
test('a worker whose heartbeat stopped is reported missing, one that was never heard as absent', () => {
  const workers = {
    ok: true,
    value: [worker('payout-executor', NOW_MS - 61_000), worker('refund-executor', NOW_MS - 59_000)],
  } as const
  const expected = ['payout-executor', 'post-scheduler']
  assert.deepEqual(watchHealth(reading({ workers }), up, { ...rules, expected }).workerHeartbeats, {
    status: 'DEGRADED',
    details: { reporting: 1, missing: ['payout-executor-1'], absent: ['post-scheduler'] },
  })
})

// D60
test('a dead letter is degraded', () => {
  const pending = { ok: true, value: [{ topic: 'deal.events.dlq', count: 1 }] } as const
  assert.deepEqual(watchHealth(reading({ pending }), up, rules).dlq, {
    status: 'DEGRADED',
    details: { count: 1, topics: { 'deal.events.dlq': 1 } },
  })
})

// X011
test('a dead letter where money is at stake is down', () => {
  const isFinancial = (topic: string) => topic === 'escrow.commands.dlq'
  const letters = (count: number) => {
    const value = [
      { topic: 'deal.events.dlq', count: 1 },
      { topic: 'escrow.commands.dlq', count },
    ]
    return watchHealth(reading({ pending: { ok: true, value } }), up, { ...rules, isFinancial }).dlq.status
  }
  assert.deepEqual([letters(0), letters(1)], ['DEGRADED', 'DOWN'])
})

// X170
test('what cannot be read is degraded and says why', () => {
  const { kafka: _, ...others } = watchHealth(reading({ workers: away, lags: away, pending: away }), up, rules)
  for (const component of Object.values(others)) {
    assert.deepEqual(component, { status: 'DEGRADED', details: { error: 'away' } })
  }
})

// D57 D60
test('the worst component decides the answer', () => {
  const health: ActuatorHealth = { status: 'UP', details: {}, components: { engine: { status: 'UP', details: {} } } }
  const fine = withComponents(health, watchHealth(reading(), up, rules))
  assert.deepEqual([fine.httpStatus, fine.body.status], [200, 'UP'])
  assert.deepEqual(Object.keys(fine.body.components), ['engine', 'kafka', 'consumerLag', 'workerHeartbeats', 'dlq'])
  const pending = { ok: true, value: [{ topic: 'a.dlq', count: 1 }] } as const
  const degraded = withComponents(health, watchHealth(reading({ pending }), up, rules))
  assert.deepEqual([degraded.httpStatus, degraded.body.status], [200, 'DEGRADED'])
  const already = withComponents({ ...health, status: 'DEGRADED' }, watchHealth(reading(), up, rules))
  assert.equal(already.body.status, 'DEGRADED')
  const down = withComponents({ ...health, status: 'DEGRADED' }, watchHealth(reading(), away, rules))
  assert.deepEqual([down.httpStatus, down.body.status], [503, 'DOWN'])
})

// X027
test("the actuator's words: UP, DEGRADED with 200, DOWN with 503, the original word in the details", () => {
  const well: HealthStatus = { status: 'healthy', latency: 3 }
  const of = (workers: HealthStatus) =>
    actuatorHealth(healthOf({ engine: well, workers, queues: well, deadLetters: well }))
  const up = of({ status: 'healthy', details: { count: 2 } })
  assert.equal(up.httpStatus, 200)
  assert.equal(up.body.status, 'UP')
  assert.deepEqual(up.body.components.engine, { status: 'UP', details: { status: 'healthy', latency: 3 } })
  assert.deepEqual(up.body.components.workers, { status: 'UP', details: { status: 'healthy', count: 2 } })
  const degraded = of({ status: 'degraded', details: { count: 1 } })
  assert.deepEqual(
    [degraded.httpStatus, degraded.body.status, degraded.body.details.status],
    [200, 'DEGRADED', 'degraded'],
  )
  const down = of({ status: 'unhealthy', error: 'gone' })
  assert.deepEqual([down.httpStatus, down.body.status, down.body.details.status], [503, 'DOWN', 'unhealthy'])
  assert.deepEqual(down.body.components.workers, { status: 'DOWN', details: { status: 'unhealthy', error: 'gone' } })
})
