import assert from 'node:assert/strict'
import { test } from 'node:test'
import { presenceOf } from '../../src/engine/capability-checks.ts'
import type { ObservedTopics } from '../../src/observe/lag.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { systemClock } from '../../src/time/clock.ts'
import { until } from '../../test/cli/run.ts'
import { stageOn } from '../../test/fixtures/admin.ts'
import { actuatorEndpoint } from './actuator.ts'

const healthEndpoints = { '/actuator/health': actuatorEndpoint() }
/** With the system clock, a read that took 100 ms would be degraded. */
const standing = () => new TestClock(systemClock.nowMs())
const bodyOf = async (response: Response) => JSON.parse(await response.text())

// D56 X027
test('/actuator/health says UP, DEGRADED or DOWN, and the word of the report in its details', async (t) => {
  const clock = standing()
  const { raw, bury } = await stageOn(t, 'memory:', { clock, healthEndpoints, health: { minWorkers: 0 } })
  const up = await raw('/actuator/health')
  const body = await bodyOf(up)
  assert.deepEqual([up.status, body.status, body.details.status], [200, 'UP', 'healthy'])
  await bury()
  await until(async () => {
    await clock.advance('1s')
    return (await bodyOf(await raw('/health'))).status === 'degraded'
  })
  const degraded = await raw('/actuator/health')
  const told = await bodyOf(degraded)
  assert.deepEqual([degraded.status, told.status, told.details.status], [200, 'DEGRADED', 'degraded'])
  const down = await (await stageOn(t, 'memory:', { healthEndpoints, health: { minWorkers: 1 } })).raw(
    '/actuator/health',
  )
  assert.deepEqual([down.status, (await bodyOf(down)).status], [503, 'DOWN'])
})

// D57 D58 D59 D60
test('with topics it has the broker, the lag of each group, the workers and the dead letters', async (t) => {
  const topics: ObservedTopics = {
    lags: async () => [
      { group: 'payout', topic: 'escrow.commands', lag: 3 },
      { group: 'posts', topic: 'deal.events', lag: 101 },
    ],
    limits: () => ({ warning: 100, critical: 500 }),
    pending: async () => [{ topic: 'deal.events.dlq', count: 2 }],
  }
  const { raw, ask, mill } = await stageOn(t, 'memory:', { topics, healthEndpoints, health: { minWorkers: 0 } })
  const atMs = systemClock.nowMs() - 61_000
  const beat = { type: 'payout', instance: 'payout-1', status: 'RUNNING', lastJobAtMs: null, lag: 0 } as const
  await presenceOf(mill.engine).beat([{ ...beat, atMs, stoppingSinceMs: null }], 600_000)
  const response = await raw('/actuator/health')
  const { status, components } = await bodyOf(response)
  assert.deepEqual([response.status, status], [200, 'DEGRADED'])
  assert.equal(components.kafka.status, 'UP')
  assert.deepEqual(Object.keys(components.consumerLag.details), ['payout', 'posts'])
  assert.deepEqual([components.consumerLag.status, components.dlq.details.count], ['DEGRADED', 2])
  assert.deepEqual(components.workerHeartbeats.details.missing, ['payout-1'])
  const listed = await ask('listTopics', {})
  assert.deepEqual(
    listed.topics.map(({ group, level, warning }) => [group, level, warning]),
    [
      ['payout', 'ok', 100],
      ['posts', 'warning', 100],
    ],
  )
})
