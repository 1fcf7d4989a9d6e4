import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkHealth, MemoryPresence } from '../../src/observe/index.ts'
import { openForTest } from '../../src/testing/open-for-test.ts'
import { workerHealthCheck } from './health.ts'

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
