import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NonRetryable } from '../../src/index.ts'
import { healthOf } from '../../src/observe/health.ts'
import { checkHealth, MemoryPresence } from '../../src/observe/index.ts'
import { openForTest } from '../../src/testing/open-for-test.ts'
import { WorkerHealthChecker, workerHealthCheck, workerHealthEndpoint } from './health.ts'
import { Told } from './rig.ts'

// A152 A153
test('the report has the check of the engine as redis', async () => {
  await using t = await openForTest()
  const health = await checkHealth(t.mill, { presence: new MemoryPresence(t.clock), clock: t.clock })
  const report = workerHealthCheck(health)
  assert.deepEqual(Object.keys(report.checks), ['redis', 'workers', 'queues', 'deadLetters'])
  assert.deepEqual(Object.keys(report).toSorted(), ['checks', 'details', 'status'])
  assert.deepEqual(report.checks.redis, health.checks.engine)
  assert.deepEqual([report.status, report.details], [health.status, health.details])
})

// A151 A153 A158 A159 A160 A161 A162 A163
test('the checker reads the workers of the engine, and its thresholds', async () => {
  await using t = await openForTest()
  const { mill, clock } = t
  const idle = await new WorkerHealthChecker(mill, { clock }).check()
  assert.equal(idle.status, 'unhealthy')
  assert.deepEqual(idle.details, { activeWorkers: 0, totalQueues: 0, oldestWaitingJob: null, deadLetterCount: 0 })
  const { definition } = new Told(() => Promise.reject(new NonRetryable('no')))
  const { id } = await mill.enqueue(definition, null)
  await mill.work([definition])
  await mill.result(id).catch(() => {})
  const statusOf = async (options: object) => {
    const { status, checks } = await new WorkerHealthChecker(mill, { clock, ...options }).check()
    return [status, checks.workers.status, checks.deadLetters.status]
  }
  assert.deepEqual(await statusOf({}), ['degraded', 'healthy', 'degraded'])
  assert.deepEqual(await statusOf({ minWorkers: 2 }), ['degraded', 'degraded', 'degraded'])
  assert.deepEqual(await statusOf({ deadLetterThreshold: 1 }), ['unhealthy', 'healthy', 'unhealthy'])
  await assert.rejects(statusOf({ minimum: 1 }), { code: 'ERR_OPTION_INVALID' })
})

test('the endpoint answers in this form, with 503 when it is unhealthy', async () => {
  await using t = await openForTest()
  const [healthy, unhealthy] = [{ status: 'healthy' }, { status: 'unhealthy' }] as const
  const statusWith = async (workers: typeof healthy | typeof unhealthy) => {
    const health = async () => healthOf({ engine: healthy, workers, queues: healthy, deadLetters: healthy })
    const presence = new MemoryPresence(t.clock)
    const sources = {
      health,
      presence,
      topics: null,
      clock: t.clock,
      ping: () => Promise.reject(new Error('not asked')),
    }
    const { httpStatus, body } = await workerHealthEndpoint(sources)()
    return [httpStatus, Object(body).checks.redis.status, Object(body).checks.workers.status]
  }
  assert.deepEqual(await statusWith(healthy), [200, 'healthy', 'healthy'])
  assert.deepEqual(await statusWith(unhealthy), [503, 'healthy', 'unhealthy'])
})
