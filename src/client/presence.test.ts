import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryPresence } from '../engine/memory-records.ts'
import { openPresence } from '../engine/open.ts'
import { type Presence, RecordPresence, type RememberingPresence } from '../engine/presence.ts'
import { defineJob } from '../job/definition.ts'
import { checkHealth, workersOf } from '../observe/health.ts'
import { joinMills } from '../observe/joined-mills.ts'
import { attachMetrics } from '../observe/metrics/metrics.ts'
import { attachPresence } from '../observe/presence.ts'
import { TestClock } from '../testing/test-clock.ts'
import { open } from './mill.ts'

const mail = defineJob({ type: 'mail', run: () => 1 })
const sms = defineJob({ type: 'sms', run: () => 1 })

const named = async (presence: Pick<Presence, 'list'>): Promise<readonly unknown[]> =>
  (await presence.list()).map(({ type, name, instance }) => [type, name, instance])

test('heartbeats go to the presence beside the engine, and everyone reads them there', async () => {
  const clock = new TestClock()
  const presence = new MemoryPresence(clock)
  await using mill = await open('memory:', { clock, presence })
  const metrics = await attachMetrics(mill, { clock })
  await mill.work([mail], { id: 'w' })
  assert.deepEqual(await named(presence), [['mail', undefined, 'w']])
  assert.ok(mill.engine.records !== undefined)
  assert.deepEqual(await new RecordPresence(mill.engine.records).list(), [])
  assert.deepEqual(
    (await mill.workers()).map(({ id, condition }) => [id, condition]),
    [['w', 'idle']],
  )
  const { details } = await checkHealth(mill, { ...workersOf(mill.engine, clock), clock })
  assert.equal(details.activeWorkers, 1)
  assert.match(await metrics.collectMetrics(), /^millrace_worker_instances\{[^}]*\} 1$/m)
  metrics.detach()
})

// D01
test('workers of one type go by the names that they are given, and say goodbye under them', async () => {
  const clock = new TestClock()
  const presence = new MemoryPresence(clock)
  await using mill = await open('memory:', { clock, presence })
  await using other = await open('memory:', { clock, presence })
  const payout = await mill.work([mail], { id: 'payout-1', name: 'payout' })
  await other.work([mail], { id: 'refund-1', name: 'refund' })
  assert.deepEqual(await named(presence), [
    ['mail', 'payout', 'payout-1'],
    ['mail', 'refund', 'refund-1'],
  ])
  assert.deepEqual(
    (await presence.seen()).map(({ type }) => type),
    ['payout', 'refund'],
  )
  // Both know what they run, and each is counted once.
  const joined = joinMills([mill, other])
  const { details } = await checkHealth(joined, { ...workersOf(joined.engine, clock), clock })
  assert.equal(details.activeWorkers, 2)
  assert.deepEqual(
    (await mill.workers()).map(({ id, types }) => [id, types.map(({ type }) => type)]),
    [
      ['payout-1', ['mail']],
      ['refund-1', ['mail']],
    ],
  )
  await payout.stop()
  assert.deepEqual(await named(presence), [['mail', 'refund', 'refund-1']])
})

// D01
test('heartbeats in a second store have the name too', async () => {
  const clock = new TestClock()
  const presence = new MemoryPresence(clock)
  const mill = await open('memory:', { clock })
  const detach = attachPresence(mill, { presence, clock })
  await mill.work([mail], { id: 'payout-1', name: 'payout' })
  await clock.advance(0)
  assert.deepEqual(await named(presence), [['mail', 'payout', 'payout-1']])
  await mill.close()
  await detach()
  assert.deepEqual(await presence.seen(), [])
})

test('a name is refused for a worker of several types, and when it is empty', async () => {
  await using mill = await open('memory:')
  await assert.rejects(mill.work([mail, sms], { name: 'both' }), { code: 'ERR_OPTION_INVALID', message: /one type/ })
  await assert.rejects(mill.work([mail], { name: '' }), { code: 'ERR_OPTION_INVALID' })
})

test('a presence of your own stays open when the mill is closed', async () => {
  const presence: RememberingPresence = new MemoryPresence()
  const mill = await open('memory:', { presence })
  await mill.close()
  assert.deepEqual(await presence.list(), [])
})

test('an engine that keeps no heartbeats for others is refused', async () => {
  await assert.rejects(openPresence('sqlite:x.db'), { code: 'ERR_UNSUPPORTED', message: /redis:\/\// })
  await assert.rejects(openPresence('nonsense'), { code: 'ERR_ENGINE_URL' })
})
