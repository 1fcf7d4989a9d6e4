import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, open } from '../../../src/index.ts'

/**
 * The integration tests of the conversation pipeline, with its polling interval of 100 ms. The seconds that it allows are those
 * of an idle machine: a job that is run takes a tenth of them, and one that is not is not there after a minute either.
 */
async function workedOff(run: () => unknown) {
  const mill = await open('sqlite::memory:')
  const job = defineJob({ type: 'test_job', backoff: { kind: 'fixed', delay: '50ms' }, run })
  const { id } = await mill.enqueue(job, null)
  const worker = await mill.work([job], { poll: 100 })
  await mill.result(id, { timeout: '1m' })
  await worker.stop('TEST')
  const rows = await mill.jobs({ state: 'completed' })
  await mill.close()
  return rows
}

// B181 X109 X112
test('a worker runs a queued job within a second, and the queue can be read after it has stopped', async () => {
  assert.deepEqual(
    (await workedOff(() => 'done')).map(({ type, result }) => [type, result]),
    [['test_job', 'done']],
  )
})

// B182
test('a handler that fails once and then succeeds runs exactly twice', async () => {
  let runs = 0
  const rows = await workedOff(() => {
    runs += 1
    if (runs === 1) throw new Error('once')
  })
  assert.equal(runs, 2)
  assert.equal(rows.length, 1)
})
