import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseExposition, sampleValue } from '../../../test/fixtures/exposition.ts'
import { openDesk } from '../../desk/desk.ts'
import type { Counts } from '../../engine/engine.ts'
import { Events, type MillEvents } from '../../events.ts'
import { defineJob } from '../../job/definition.ts'
import { drain } from '../../testing/drain.ts'
import { openForTest } from '../../testing/open-for-test.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { attachMetrics } from './metrics.ts'

const type = 'send-mail'
const good = defineJob({ type, run: () => 1 })
const bad = defineJob({ type, attempts: 1, run: () => Promise.reject(new Error('never')) })
const none = { name: 'none', counts: async (): Promise<Counts> => ({}) }
const facts = { id: 'x', type, priority: 5, attempts: 3, tenant: null, runAtMs: 0, createdAtMs: 0 }
const error = { name: 'Error', code: null, message: 'x', stack: null }

// X085
test('leases that were lost are counted by reason, those that ran out by what became of the job', async () => {
  const events = new Events()
  const metrics = await attachMetrics({ events, engine: none })
  const lost = (reason: MillEvents['lease.lost']['reason']): void =>
    events.emit('lease.lost', { job: facts, attempt: 1, worker: 'w', reason, started: true })
  const value = async (name: string, labels: Readonly<Record<string, string>>) =>
    sampleValue(await metrics.collectMetrics(), `millrace_${name}`, labels)
  events.emit('worker.started', { worker: 'w', types: [type], concurrency: 1 })
  assert.equal(await value('leases_expired_total', { type, outcome: 'dead' }), 0)
  lost('expired')
  lost('cancelled')
  lost('cancelled')
  events.emit('lease.reaped', { job: facts, attempt: 1, worker: 'w', outcome: { kind: 'retry', delayMs: 1, error } })
  events.emit('lease.reaped', { job: facts, attempt: 3, worker: 'w', outcome: { kind: 'dead', error } })
  events.emit('reaper.pass', { retried: 1, dead: 1, durationMs: 30 })
  assert.equal(await value('leases_lost_total', { type, reason: 'expired' }), 1)
  assert.equal(await value('leases_lost_total', { type, reason: 'cancelled' }), 2)
  assert.equal(await value('leases_expired_total', { type, outcome: 'retry' }), 1)
  assert.equal(await value('leases_expired_total', { type, outcome: 'dead' }), 1)
  assert.equal(await value('reaper_pass_duration_seconds_bucket', { le: '0.025' }), 0)
  assert.equal(await value('reaper_pass_duration_seconds_bucket', { le: '0.1' }), 1)
  assert.equal(await value('lease_expiry_rate', { type }), 2 / 60)
})

// X010
test('dead letters are counted as they come, as they wait and as they are dealt with', async () => {
  await using t = await openForTest()
  const metrics = await attachMetrics(t.mill, { clock: t.clock })
  const value = async (name: string) => sampleValue(await metrics.collectMetrics(), `millrace_${name}`, { type })
  await t.mill.enqueueMany(bad, [1, 2, 3, 4, 5])
  await drain(t.mill, [bad])
  assert.deepEqual([await value('jobs_dead_total'), await value('dead_letters')], [5, 5])
  assert.deepEqual([await value('jobs_replayed_total'), await value('jobs_discarded_total')], [0, 0])
  const desk = openDesk(t.mill, { clock: t.clock })
  const [first, second, third, ...rest] = (await desk.list()).map(({ job }) => job.id)
  const by = { who: 'ann', reason: 'tried' }
  await desk.replay(first ?? '', by)
  await desk.replayAll({ ids: [first ?? '', second ?? ''] }, by)
  await desk.discard({ ids: [third ?? ''] }, by)
  await desk.discard({ ids: rest }, by, { dryRun: true })
  await desk.undo(third ?? '', by)
  await desk.purge({ ids: rest }, by)
  assert.equal(await value('jobs_replayed_total'), 2)
  assert.equal(await value('jobs_discarded_total'), 3)
  assert.equal(await value('dead_letters'), 1)
  assert.deepEqual(
    t.events.flatMap(({ name, event }) => (name === 'desk.acted' ? [`${event.action} ${event.who}`] : [])),
    ['replay ann', 'replay ann', 'discard ann', 'undo ann', 'purge ann', 'purge ann'],
  )
})

test('a replay that is refused is not counted', async () => {
  await using t = await openForTest()
  await t.mill.enqueue(bad, 1, { key: 'k' })
  await drain(t.mill, [bad])
  await t.mill.enqueue(good, 2, { key: 'k' })
  const { done, refused } = await openDesk(t.mill, { clock: t.clock }).replayAll({ type }, { who: 'ann' })
  assert.deepEqual([done, refused], [0, { changed: 1 }])
  assert.deepEqual(
    t.events.filter(({ name }) => name === 'desk.acted'),
    [],
  )
})

// B143 B145 B146 B148 X015
test('rolling stats are in the scrape, by type', async () => {
  await using t = await openForTest()
  const metrics = await attachMetrics(t.mill, { clock: t.clock })
  await t.mill.enqueueMany(good, [1, 2, 3])
  await drain(t.mill, [good])
  await t.mill.enqueue(bad, null)
  await drain(t.mill, [bad])
  await t.mill.enqueue(good, 4)
  await t.clock.advance('90s')
  const text = await metrics.collectMetrics()
  const of = (name: string) => sampleValue(text, `millrace_${name}`, { type })
  assert.deepEqual([of('processing_rate'), of('success_rate'), of('attempt_failure_rate')], [3 / 60, 0.75, 0.25])
  assert.deepEqual([of('latency_p50_seconds'), of('latency_p95_seconds'), of('latency_p99_seconds')], [0, 0, 0])
  assert.equal(of('lease_expiry_rate'), 0)
  assert.equal(sampleValue(text, 'millrace_queue_age_seconds'), 90)
})

test('every sample says which engine it is of', async () => {
  await using t = await openForTest()
  const metrics = await attachMetrics(t.mill, { clock: t.clock })
  await t.mill.enqueue(good, 1)
  await drain(t.mill, [good])
  const samples = [...parseExposition(await metrics.collectMetrics()).values()].flatMap((family) => family.samples)
  assert.ok(samples.length > 50)
  assert.deepEqual([...new Set(samples.map(({ labels }) => labels.engine))], ['memory'])
})

test('scrapes at the same time ask the engine once', async () => {
  const clock = new TestClock()
  const gate = Promise.withResolvers<Counts>()
  let asked = 0
  const counts = (): Promise<Counts> => {
    asked += 1
    return asked === 1 ? gate.promise : Promise.resolve({})
  }
  const metrics = await attachMetrics({ events: new Events(), engine: { name: 'none', counts } }, { clock })
  const scrapes = Promise.all([metrics.collectMetrics(), metrics.collectMetrics(), metrics.collectMetrics()])
  gate.resolve({})
  const [one, other] = await scrapes
  assert.equal(asked, 1)
  assert.equal(one, other)
  await metrics.collectMetrics()
  assert.equal(asked, 2, 'the next one asks again')
})

test('a source that hangs holds a scrape up for a second, not for ever', async () => {
  const clock = new TestClock()
  const engine = { name: 'none', counts: () => new Promise<Counts>(() => {}) }
  const metrics = await attachMetrics({ events: new Events(), engine }, { clock })
  const scrape = metrics.collectMetrics()
  await clock.advance('1s')
  assert.equal(sampleValue(await scrape, 'millrace_engine_up'), 0)
  assert.equal(clock.waiting, 0)
})

test('acts on dead letters are counted from 0 where no worker runs, and a scrape counts the store once', async () => {
  await using t = await openForTest()
  await t.mill.enqueue(bad, 1)
  await drain(t.mill, [bad])
  let asked = 0
  const counts = (): Promise<Counts> => {
    asked += 1
    return t.mill.engine.counts()
  }
  // What another process sees of it.
  const metrics = await attachMetrics({ events: new Events(), engine: { name: 'memory', counts } })
  const text = await metrics.collectMetrics()
  assert.equal(sampleValue(text, 'millrace_jobs_replayed_total', { type }), 0)
  assert.equal(sampleValue(text, 'millrace_jobs_discarded_total', { type }), 0)
  assert.equal(sampleValue(text, 'millrace_jobs_dead_total', { type }), null, 'which only workers know')
  assert.equal(asked, 1)
})

test('a store that recovers leases itself has no reaper that could be silent', async () => {
  const passes = async (recovery: 'reaper' | 'engine') => {
    const events = new Events()
    const metrics = await attachMetrics({ events, engine: { ...none, capabilities: { recovery } } })
    events.emit('worker.started', { worker: 'w', types: [type], concurrency: 1 })
    events.emit('keeper.started', { keeper: 'w', duties: recovery === 'reaper' ? ['reap'] : [] })
    return sampleValue(await metrics.collectMetrics(), 'millrace_reaper_pass_duration_seconds_count')
  }
  assert.deepEqual([await passes('reaper'), await passes('engine')], [0, null])
})
