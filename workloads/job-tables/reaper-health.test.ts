import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TestClock } from '../../src/testing/test-clock.ts'
import type { Row } from './database.ts'
import { ReaperHealth } from './reaper-health.ts'
import type { ReaperRun } from './service.ts'

const DONE: ReaperRun = { durationMs: 8, result: { requeuedIds: ['a'], failedIds: [] }, error: null }
const FAILED: ReaperRun = { durationMs: 8, result: null, error: 'no server answers there' }

function stage(ping: () => Promise<void> = async () => {}) {
  const clock = new TestClock()
  const { promise, resolve } = Promise.withResolvers<{ rows: readonly Row[] }>()
  const health = new ReaperHealth({ database: { query: () => promise }, ping, clock })
  const ask = async (path: string): Promise<readonly [number, string]> => {
    const answer = await health.probes[path]?.()
    return [answer?.httpStatus ?? 0, JSON.stringify(answer?.body)]
  }
  const statuses = async (): Promise<readonly number[]> =>
    (await Promise.all(['/health', '/health/ready', '/health/live'].map(ask))).map(([status]) => status)
  return { clock, health, ask, statuses, answer: () => resolve({ rows: [] }) }
}

describe('the health of a reaper', () => {
  test('is not ready before its first run has ended, and ready after one that succeeded', async () => {
    const { health, statuses, ask } = stage()
    health.onStarted()
    assert.deepEqual(await statuses(), [503, 503, 200])
    assert.match((await ask('/health'))[1], /the first run has not ended yet/)
    health.onEnded(DONE)
    assert.deepEqual(await statuses(), [200, 200, 200])
    assert.match((await ask('/health'))[1], /"requeued":1,"failed":0/)
  })

  test('is not ready while runs fail, counts them, and says why', async () => {
    const { health, statuses, ask } = stage()
    for (let n = 0; n < 3; n += 1) {
      health.onStarted()
      health.onEnded(FAILED)
    }
    assert.deepEqual(await statuses(), [503, 503, 200])
    assert.match((await ask('/health'))[1], /the last 3 runs failed: no server answers there/)
    health.onEnded(DONE)
    assert.deepEqual(await statuses(), [200, 200, 200])
  })

  test('is not ready at once when the database is gone, and alive', async () => {
    const { health, statuses, ask } = stage(() => Promise.reject(new Error('ECONNREFUSED')))
    health.onEnded(DONE)
    assert.deepEqual(await statuses(), [503, 503, 200])
    assert.match((await ask('/health'))[1], /the database does not answer: .*ECONNREFUSED/)
  })

  test('a database that does not answer is asked by one statement, however many probes come', async () => {
    let asked = 0
    const { clock, health, ask } = stage(() => {
      asked += 1
      return new Promise(() => {})
    })
    health.onEnded(DONE)
    const probing = Promise.all([ask('/health'), ask('/health/ready'), ask('/health')])
    await clock.advance('1s')
    assert.deepEqual(
      (await probing).map(([status]) => status),
      [503, 503, 503],
    )
    const again = ask('/health/ready')
    await clock.advance('1s')
    assert.equal((await again)[0], 503)
    assert.equal(asked, 1)
  })

  test('is not alive when a run has had no answer for two minutes, until one comes', async () => {
    const { clock, health, statuses, ask, answer } = stage()
    health.onEnded(DONE)
    await clock.advance('1h')
    assert.deepEqual(await statuses(), [200, 200, 200], 'between runs nothing hangs')
    health.onStarted()
    const asked = health.watched.query('select')
    await clock.advance('2m')
    assert.deepEqual(await statuses(), [200, 200, 200])
    await clock.advance('1s')
    assert.deepEqual(await statuses(), [503, 503, 503])
    assert.match((await ask('/health/live'))[1], /no answer of the database for 2m; restart the reaper/)
    answer()
    await asked
    assert.deepEqual(await statuses(), [200, 200, 200])
  })
})
