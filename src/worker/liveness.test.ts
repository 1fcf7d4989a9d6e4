import assert from 'node:assert/strict'
import { test } from 'node:test'
import { presenceOf } from '../engine/capability-checks.ts'
import { defineJob } from '../job/definition.ts'
import { Faults } from '../testing/fault-injection.ts'
import { openForTest } from '../testing/open-for-test.ts'

// X029
test('a worker that cannot renew its leases still says that it lives', async () => {
  const faults = new Faults().fail('renew', { times: Number.POSITIVE_INFINITY })
  await using stage = await openForTest({ faults })
  const { mill, clock } = stage
  const { promise, resolve } = Promise.withResolvers<void>()
  const slow = defineJob({ type: 'slow', lease: '15s', run: () => promise })
  const { id } = await mill.enqueue(slow, null)
  const started = mill.events.next('job.started')
  await mill.work([slow], { id: 'w1', keeper: false })
  await started
  await clock.advance('25s')
  assert.ok(faults.calls('renew') > 1)
  const view = await mill.job(id)
  assert.ok((view?.leaseUntilMs ?? 0) < clock.nowMs(), 'the lease has run out')
  const beats = await presenceOf(mill.engine).list()
  assert.deepEqual(
    beats.map(({ instance, atMs }) => [instance, clock.nowMs() - atMs]),
    [['w1', 5_000]],
  )
  resolve()
})

// X029
test('a worker that cannot say that it lives still renews its leases', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const presence = presenceOf(mill.engine)
  Object.assign(mill.engine, { records: { ...mill.engine.records, put: () => Promise.reject(new Error('away')) } })
  const { promise, resolve } = Promise.withResolvers<void>()
  const slow = defineJob({ type: 'slow', lease: '15s', run: () => promise })
  const { id } = await mill.enqueue(slow, null)
  const started = mill.events.next('job.started')
  await mill.work([slow], { id: 'w1' })
  await started
  await clock.advance('60s')
  assert.deepEqual(await presence.list(), [])
  resolve()
  await mill.result(id)
  assert.equal((await mill.job(id))?.attempt, 1)
})
