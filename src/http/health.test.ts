import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../test/cli/run.ts'
import { stageOn } from '../../test/fixtures/admin.ts'
import { open } from '../client/mill.ts'
import type { Engine } from '../engine/engine.ts'
import { openEngine } from '../engine/open.ts'
import { TestClock } from '../testing/test-clock.ts'
import { systemClock } from '../time/clock.ts'
import { createAdmin } from './admin.ts'
import type { Topics } from './parts.ts'

const never = () => new Promise<never>(() => {})

/** An engine of which some parts are others. */
function replaced(engine: Engine, others: Partial<Engine>): Engine {
  return new Proxy(engine, {
    get: (target, name) => {
      if (Object.hasOwn(others, name)) return Reflect.get(others, name)
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** By the machine's own, an answer that took 100 ms would be degraded, and figures would rest as long as it stood still. */
const standing = () => new TestClock(systemClock.nowMs())

const bodyOf = async (response: Response) => JSON.parse(await response.text())

// A151 A152 A153
test('/health has the checks and words of document A', async (t) => {
  const clock = standing()
  const { raw, bury } = await stageOn(t, 'memory:', { clock, health: { minWorkers: 0 } })
  const well = await raw('/health')
  assert.equal(well.status, 200)
  const { status, checks, details } = await bodyOf(well)
  assert.deepEqual([status, Object.keys(checks)], ['healthy', ['engine', 'workers', 'queues', 'deadLetters']])
  assert.deepEqual(details, { activeWorkers: 0, totalQueues: 0, oldestWaitingJob: null, deadLetterCount: 0 })
  await bury()
  await until(async () => {
    await clock.advance('1s')
    return (await bodyOf(await raw('/health'))).status === 'degraded'
  })
  assert.equal((await raw('/health')).status, 200)
})

test('nobody at work is unhealthy, and alive and ready all the same', async (t) => {
  const { raw } = await stageOn(t, 'memory:', { clock: standing() })
  const health = await raw('/health')
  assert.deepEqual([health.status, (await bodyOf(health)).checks.workers.status], [503, 'unhealthy'])
  for (const path of ['/health/live', '/health/ready']) {
    const response = await raw(path)
    assert.deepEqual([response.status, (await bodyOf(response)).status], [200, 'healthy'], path)
  }
})

// X070
test('a store that hangs is told within a second or so, everywhere', async (t) => {
  const engine = replaced(await openEngine('memory:', { clock: systemClock, migrate: true }), {
    ping: never,
    counts: never,
  })
  const mill = await open(engine, {})
  const admin = createAdmin(mill, { page: null, peer: () => '127.0.0.1' })
  t.after(async () => {
    await admin.close()
    await mill.close()
  })
  const get = (path: string) => admin.fetch(new Request(`http://localhost${path}`))
  const [health, live, ready, actuator, metrics] = await Promise.all(
    ['/health', '/health/live', '/health/ready', '/actuator/health', '/metrics'].map(get),
  )
  assert.ok(health && live && ready && actuator && metrics)
  assert.deepEqual([health.status, live.status, ready.status, actuator.status], [503, 200, 503, 503])
  assert.match((await bodyOf(health)).checks.engine.error, /within 1000 ms/)
  assert.match((await bodyOf(ready)).checks.engine.error, /within 1000 ms/)
  assert.equal((await bodyOf(actuator)).components.engine.status, 'DOWN')
  assert.deepEqual([metrics.status, /millrace_engine_up(?:\{[^}]*\})? 0/.test(await metrics.text())], [200, true])
})

// D56 X027
test('/actuator/health has the words of document D, and those of A in its details', async (t) => {
  const clock = standing()
  const { raw, bury } = await stageOn(t, 'memory:', { clock, health: { minWorkers: 0 } })
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
  const down = await (await stageOn(t, 'memory:', { health: { minWorkers: 1 } })).raw('/actuator/health')
  assert.deepEqual([down.status, (await bodyOf(down)).status], [503, 'DOWN'])
})

// D57 D58 D59 D60
test('with topics it says whether consumers reach them, how far each group is behind, who reports, and what is dead', async (t) => {
  const desk = { list: never, replay: never, discard: never, replayAll: never }
  const topics: Topics = {
    lags: async () => [
      { group: 'payout', topic: 'escrow.commands', lag: 3 },
      { group: 'posts', topic: 'deal.events', lag: 101 },
    ],
    limits: () => ({ warning: 100, critical: 500 }),
    pending: async () => [{ topic: 'deal.events.dlq', count: 2 }],
    desk,
  }
  const { raw, ask, mill } = await stageOn(t, 'memory:', { topics, health: { minWorkers: 0 } })
  const atMs = systemClock.nowMs() - 61_000
  const beat = { type: 'payout', instance: 'payout-1', status: 'RUNNING', lastJobAtMs: null, lag: 0 } as const
  await mill.engine.presence?.beat([{ ...beat, atMs, stoppingSinceMs: null }], 600_000)
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

// A150
test('/metrics is what Prometheus scrapes', async (t) => {
  const { raw, bury } = await stageOn(t, 'memory:')
  await bury()
  const response = await raw('/metrics')
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  assert.match(await response.text(), /^# HELP millrace_jobs_total /m)
})
