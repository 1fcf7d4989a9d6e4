import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pausesOf, presenceOf } from '../engine/capability-checks.ts'
import { stopName } from '../engine/pauses.ts'
import { isMillraceError } from '../errors.ts'
import { defineJob } from '../job/definition.ts'
import { openForTest } from '../testing/open-for-test.ts'
import { drainWorker } from './drain.ts'

const by = { who: 'ann', reason: 'it leaks' }
const mail = defineJob({ type: 'mail', run: () => 1 })

test('a worker of an earlier version or of another program is not asked', async () => {
  await using t = await openForTest()
  const { engine } = t.mill
  const beat = {
    status: 'RUNNING',
    atMs: t.clock.nowMs(),
    lastJobAtMs: null,
    lag: null,
    stoppingSinceMs: null,
  } as const
  const work = { host: 'h', pid: 1, startedAtMs: 1, concurrency: 1, running: 0, jobs: [] }
  await presenceOf(engine).beat(
    [
      { ...beat, type: 'mail', instance: 'older', work },
      { ...beat, type: 'mail', instance: 'foreign' },
    ],
    60_000,
  )
  for (const id of ['older', 'foreign']) {
    await assert.rejects(drainWorker(engine, id, by), (error) => isMillraceError(error, 'ERR_OPTION_INVALID'))
  }
  await assert.rejects(drainWorker(engine, 'none', by), (error) => isMillraceError(error, 'ERR_RECORD_UNKNOWN'))
  assert.deepEqual(await pausesOf(engine).all?.(), [])
})

test('a request to a worker that was killed is not for the next one with its id, and goes with the next request', async () => {
  await using t = await openForTest()
  const { engine } = t.mill
  const left = stopName('one', t.clock.nowMs() - 1)
  await pausesOf(engine).pause(left, by)
  await pausesOf(engine).pause('sms', by)
  const worker = await t.mill.work([mail], { id: 'one' })
  await t.clock.advance('3s')
  assert.equal((await t.mill.workers())[0]?.stoppingSinceMs, null)
  assert.equal(await drainWorker(engine, 'one', by), true)
  await worker.stopped
  assert.deepEqual(
    (await pausesOf(engine).all?.())?.map(({ type }) => type),
    ['sms'],
  )
})
