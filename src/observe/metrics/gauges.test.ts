import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseExposition, sampleValue } from '../../../test/fixtures/exposition.ts'
import type { Counts } from '../../engine/engine.ts'
import { Events } from '../../events.ts'
import { defineJob } from '../../job/definition.ts'
import { openForTest } from '../../testing/open-for-test.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { attachMetrics } from './metrics.ts'

const type = 'webhook-dispatch'
const good = defineJob({ type, run: () => 1 })

// A148 A149
test('the depth of every queue is read when it is collected', async () => {
  await using t = await openForTest()
  const metrics = await attachMetrics(t.mill, { prefix: 'ruvbot_worker_', clock: t.clock })
  const value = async (name: string, labels: Readonly<Record<string, string>>) =>
    sampleValue(await metrics.collectMetrics(), `ruvbot_worker_${name}`, labels)
  const depth = (state: string) => value('queue_depth', { type, state })
  assert.equal(await depth('waiting'), null)
  await t.mill.enqueueMany(good, [1, 2])
  await t.mill.enqueue(good, 3, { delay: '1h' })
  await t.mill.enqueue(defineJob({ type: 'other', run: () => 1 }), null)
  const family = parseExposition(await metrics.collectMetrics()).get('ruvbot_worker_queue_depth')
  assert.equal(family?.help, 'Number of jobs in queue')
  assert.equal(family?.type, 'gauge')
  assert.deepEqual(
    family?.samples.map(({ labels, value }) => [labels.type, labels.state, value]).toSorted(),
    [
      ['other', 'active', 0],
      ['other', 'delayed', 0],
      ['other', 'waiting', 1],
      [type, 'active', 0],
      [type, 'delayed', 1],
      [type, 'waiting', 2],
    ].toSorted(),
  )
  await t.mill.enqueue(good, 4)
  assert.equal(await depth('waiting'), 3)
  const consumer = await t.mill.engine.consume({ types: [{ type, leaseMs: 60_000 }], worker: 'w' })
  await consumer.claim({ max: 2, waitMs: 0, signal: new AbortController().signal })
  assert.deepEqual([await depth('waiting'), await depth('active'), await depth('delayed')], [1, 2, 1])
  assert.equal(await value('dead_letters', { type }), 0)
})

test('a queue that is empty is at 0 while it has a worker, and one that is gone is not shown', async () => {
  const events = new Events()
  let counts: Counts = { gone: { ready: 1, delayed: 0, inProgress: 0, completed: 0, dead: 2 } }
  const metrics = await attachMetrics({ events, engine: { name: 'none', counts: async () => counts } })
  events.emit('worker.started', { worker: 'w', types: [type], concurrency: 1 })
  const value = async (name: string, of: string) => sampleValue(await metrics.collectMetrics(), name, { type: of })
  assert.equal(await value('millrace_jobs_waiting', type), 0)
  assert.equal(await value('millrace_dead_letters', 'gone'), 2)
  counts = {}
  assert.equal(await value('millrace_dead_letters', 'gone'), null)
})

for (const [how, counts] of [
  ['fails', () => Promise.reject(new Error('gone'))],
  ['hangs', () => new Promise<Counts>(() => {})],
] as const) {
  test(`an engine that ${how} leaves what was counted here, without depths`, async () => {
    const clock = new TestClock()
    const events = new Events()
    let answer: () => Promise<Counts> = async () => ({
      [type]: { ready: 7, delayed: 0, inProgress: 0, completed: 0, dead: 0 },
    })
    const metrics = await attachMetrics({ events, engine: { name: 'none', counts: () => answer() } }, { clock })
    const before = await metrics.collectMetrics()
    assert.equal(sampleValue(before, 'millrace_engine_up'), 1)
    assert.equal(sampleValue(before, 'millrace_jobs_waiting', { type }), 7)
    answer = counts
    events.emit('worker.started', { worker: 'w', types: [type], concurrency: 1 })
    const collected = metrics.collectMetrics()
    await clock.advance('1s')
    const text = await collected
    assert.equal(sampleValue(text, 'millrace_engine_up'), 0)
    assert.equal(sampleValue(text, 'millrace_jobs_waiting', { type }), null)
    assert.equal(sampleValue(text, 'millrace_jobs_started_total', { type }), 0)
    assert.equal(clock.waiting, 0)
  })
}

test('where the store knows the workers by itself, every process tells of them', async () => {
  let members = [{ id: 'a', types: [type] }]
  const engine = { name: 'none', counts: async () => ({}), workers: async () => members }
  const events = new Events()
  const metrics = await attachMetrics({ events, engine })
  const instances = async () => sampleValue(await metrics.collectMetrics(), 'millrace_worker_instances')
  assert.equal(await instances(), 1, 'a process without a worker')
  members = []
  assert.equal(await instances(), 0)
  events.emit('worker.started', { worker: 'w', types: [type], concurrency: 1 })
  assert.equal(await instances(), 1, 'it has started and is not a member yet')
  members = [
    { id: 'its member', types: [type] },
    { id: 'another', types: [type] },
  ]
  assert.equal(await instances(), 2)
})
