import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../test/cli/run.ts'
import { stageOn } from '../../test/fixtures/admin.ts'
import { open } from '../client/mill.ts'
import type { Engine } from '../engine/engine.ts'
import { openEngine } from '../engine/open.ts'
import type { HealthEndpoint } from '../observe/health.ts'
import { TestClock } from '../testing/test-clock.ts'
import { systemClock } from '../time/clock.ts'
import { createAdmin } from './admin.ts'

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
test('/health has the four checks and the details', async (t) => {
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
  const [health, live, ready, metrics] = await Promise.all(
    ['/health', '/health/live', '/health/ready', '/metrics'].map(get),
  )
  assert.ok(health && live && ready && metrics)
  assert.deepEqual([health.status, live.status, ready.status], [503, 200, 503])
  assert.match((await bodyOf(health)).checks.engine.error, /within 1000 ms/)
  assert.match((await bodyOf(ready)).checks.engine.error, /within 1000 ms/)
  assert.deepEqual([metrics.status, /millrace_engine_up(?:\{[^}]*\})? 0/.test(await metrics.text())], [200, true])
})

test('another endpoint reads the same sources', async (t) => {
  const endpoint: HealthEndpoint =
    ({ health, ping, topics }) =>
    async () => {
      const [{ status }, engine] = await Promise.all([health(), ping()])
      return { httpStatus: 418, body: { status, engine: engine.ok, topics } }
    }
  const options = { clock: standing(), health: { minWorkers: 0 }, healthEndpoints: { '/teapot': endpoint } }
  const { raw } = await stageOn(t, 'memory:', options)
  const response = await raw('/teapot')
  assert.deepEqual([response.status, await bodyOf(response)], [418, { status: 'healthy', engine: true, topics: null }])
  assert.equal((await raw('/teapot', { method: 'POST' })).status, 405)
})

// A150
test('/metrics is what Prometheus scrapes', async (t) => {
  const { raw, bury } = await stageOn(t, 'memory:')
  await bury()
  const response = await raw('/metrics')
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  assert.match(await response.text(), /^# HELP millrace_jobs_total /m)
})
