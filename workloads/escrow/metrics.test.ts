import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDesk } from '../../src/desk/desk.ts'
import { presenceOf } from '../../src/engine/capability-checks.ts'
import { MemoryPresence } from '../../src/engine/memory-records.ts'
import type { Beat } from '../../src/engine/presence.ts'
import { defineJob } from '../../src/job/definition.ts'
import { attachMetrics, type Metrics } from '../../src/observe/index.ts'
import { drain } from '../../src/testing/drain.ts'
import { openForTest, type TestMill } from '../../src/testing/open-for-test.ts'
import { parseExposition, sampleValue } from '../../test/fixtures/exposition.ts'
import { WATCH_METRIC_NAMES, type WatchMetrics, watchMetrics } from './metrics.ts'
import { Watch, type WatchSources } from './watch.ts'

interface Stage extends AsyncDisposable {
  readonly t: TestMill
  readonly presence: MemoryPresence
  readonly metrics: Metrics
  readonly onReplayed: WatchMetrics['onReplayed']
  readonly onArchived: WatchMetrics['onArchived']
  value(name: string, labels?: Readonly<Record<string, string>>): Promise<number | null>
}

async function stage(sources: Partial<WatchSources> = {}): Promise<Stage> {
  const t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  const lags = async () => [
    { group: 'payout-executor', topic: 'escrow.commands', lag: 7 },
    { group: 'refund-executor', topic: 'escrow.commands', lag: 0 },
  ]
  const pending = async () => [{ topic: 'escrow.commands.dlq', count: 2 }]
  const watch = new Watch({ presence, lags, pending, clock: t.clock, ...sources })
  const dlqTopicOf = (type: string) => (type === 'local' ? null : `${type}.dlq`)
  const { instrument, onReplayed, onArchived } = watchMetrics({ watch, dlqTopicOf })
  const metrics = await attachMetrics(t.mill, { instruments: [instrument], clock: t.clock })
  return {
    t,
    onReplayed,
    onArchived,
    presence,
    metrics,
    value: async (name, labels) => sampleValue(await metrics.collectMetrics(), name, labels),
    [Symbol.asyncDispose]: () => t.close(),
  }
}

class TonApiTimeoutException extends Error {
  override readonly name = 'TonApiTimeoutException'
}
const type = 'escrow.commands'
const failing = (error: Error) =>
  defineJob({ type, attempts: 3, backoff: { kind: 'list', delays: ['1s', '5s'] }, run: () => Promise.reject(error) })

async function runOut({ t }: Stage, error: Error): Promise<void> {
  const job = failing(error)
  await t.mill.enqueue(job, null)
  for (const wait of ['1s', '5s', '0s'] as const) {
    await drain(t.mill, [job])
    await t.clock.advance(wait)
  }
}

// D67 D69
test('a record that runs out is one letter of its topic and two retries of its worker', async () => {
  await using s = await stage()
  await runOut(s, new TonApiTimeoutException('no answer for ann@example.com'))
  assert.equal(await s.value('worker_dlq_messages_total', { topic: 'escrow.commands.dlq' }), 1)
  const labels = { worker: type, error: 'TonApiTimeoutException' }
  assert.equal(await s.value('worker_retry_count_total', labels), 2)
})

// D67 D68 D69
test('a worker with a name is told by it and its instance, and replays and archived letters by topic', async () => {
  await using s = await stage()
  const { mill, clock } = s.t
  const job = failing(new Error('no'))
  await mill.work([job], { id: 'payout-executor-1', name: 'payout-executor' })
  const topic = 'escrow.commands.dlq'
  const worker = { worker: 'payout-executor', worker_instance: 'payout-executor-1' }
  assert.equal(await s.value('worker_dlq_messages_total', { topic, ...worker }), 0)
  assert.equal(await s.value('worker_dlq_replayed_total', { topic }), 0)
  const { id } = await mill.enqueue(job, null)
  for (const wait of ['1s', '5s', '0s'] as const) await clock.advance(wait)
  while ((await mill.job(id))?.state !== 'dead_letter') await clock.advance('1s')
  assert.equal(await s.value('worker_retry_count_total', { ...worker, error: 'Error' }), 2)
  assert.equal(await s.value('worker_dlq_messages_total', { topic, ...worker }), 1)
  await openDesk(mill).replay(id, { who: 'ann' })
  assert.equal(await s.value('worker_dlq_replayed_total', { topic }), 1)
  s.onArchived(topic, 3)
  assert.equal(await s.value('worker_dlq_archived_total', { topic }), 3)
})

// X169
test('errors are told apart by class, never by text, and there are not many of them', async () => {
  await using s = await stage()
  const named = (name: string) => Object.assign(new Error('x'), { name })
  for (let index = 0; index < 101; index += 1) await runOut(s, named(`Error${index}`))
  await runOut(s, named('deal 550e8400 not found'))
  const text = await s.metrics.collectMetrics()
  const samples = parseExposition(text).get('worker_retry_count_total')?.samples ?? []
  assert.equal(samples.length, 101)
  assert.equal(sampleValue(text, 'worker_retry_count_total', { worker: type, error: 'other' }), 4)
})

// D68
test('replays are counted', async () => {
  await using s = await stage()
  s.onReplayed('escrow.commands.dlq')
  assert.equal(await s.value('worker_dlq_replayed_total', { topic: 'escrow.commands.dlq' }), 1)
})

// D21 X160
test('lag by group and topic, and letters that wait, are read at the scrape', async () => {
  await using s = await stage()
  assert.equal(await s.value('kafka_consumer_lag', { group: 'payout-executor', topic: type }), 7)
  assert.equal(await s.value('kafka_consumer_lag', { group: 'refund-executor', topic: type }), 0)
  assert.equal(await s.value('worker_dlq_pending', { topic: 'escrow.commands.dlq' }), 2)
})

const beat = (atMs: number, given: Partial<Beat> = {}): Beat => ({
  type: 'payout-executor',
  instance: 'payout-executor-1',
  status: 'RUNNING',
  atMs,
  lastJobAtMs: atMs - 5_000,
  lag: 3,
  stoppingSinceMs: null,
  ...given,
})

// D66 X157
test('the last heartbeat of a worker stays in the scrape when the worker is dead', async () => {
  await using s = await stage()
  const startMs = s.t.clock.nowMs()
  const labels = { worker: 'payout-executor', worker_instance: 'payout-executor-1' }
  await s.presence.beat([beat(startMs)], 30_000)
  assert.equal(await s.value('worker_heartbeat_timestamp', labels), startMs / 1_000)
  assert.equal(await s.value('worker_last_message_timestamp', labels), startMs / 1_000 - 5)
  assert.equal(await s.value('worker_consumer_lag', labels), 3)
  await s.t.clock.advance('2m')
  assert.equal(await s.value('worker_heartbeat_timestamp', labels), startMs / 1_000)
  assert.equal(await s.value('worker_consumer_lag', labels), null)
  await s.presence.gone('payout-executor-1', ['payout-executor'])
  assert.equal(await s.value('worker_heartbeat_timestamp', labels), null)
})

test('a worker whose type is paused has no older last message than the pause, so that no rule calls it stuck', async () => {
  await using s = await stage()
  const atMs = s.t.clock.nowMs()
  const work = { host: 'h', pid: 1, startedAtMs: atMs, concurrency: 1, running: 0, jobs: [], pausedUntilMs: atMs }
  await s.presence.beat([beat(atMs, { lastJobAtMs: atMs - 600_000, work })], 30_000)
  const labels = { worker: 'payout-executor', worker_instance: 'payout-executor-1' }
  assert.equal(await s.value('worker_last_message_timestamp', labels), atMs / 1_000)
})

test('replays count from 0 for every topic of dead letters, also in a process without workers', async () => {
  await using s = await stage()
  const labels = { topic: 'escrow.commands.dlq' }
  assert.equal(await s.value('worker_dlq_replayed_total', labels), 0)
  s.onReplayed('escrow.commands.dlq')
  assert.equal(await s.value('worker_dlq_replayed_total', labels), 1)
})

test('a worker that stops says since when', async () => {
  await using s = await stage()
  const atMs = s.t.clock.nowMs()
  await s.presence.beat([beat(atMs, { status: 'SHUTTING_DOWN', stoppingSinceMs: atMs - 9_000 })], 60_000)
  const labels = { worker: 'payout-executor', worker_instance: 'payout-executor-1' }
  assert.equal(await s.value('worker_stopping_timestamp', labels), atMs / 1_000 - 9)
})

// X170
test('while heartbeats cannot be read none is in the scrape, and that is said', async () => {
  const away = () => Promise.reject(new Error('away'))
  await using s = await stage({ presence: { list: away, seen: away } })
  const text = await s.metrics.collectMetrics()
  assert.equal(sampleValue(text, 'worker_presence_up'), 0)
  assert.deepEqual(parseExposition(text).get('worker_heartbeat_timestamp')?.samples, [])
  assert.equal(sampleValue(text, 'kafka_consumer_lag', { group: 'payout-executor', topic: type }), 7)
})

// D21 D66..D69
test('every metric has its name in a scrape, of its kind', async () => {
  await using s = await stage()
  const families = parseExposition(await s.metrics.collectMetrics())
  for (const name of Object.values(WATCH_METRIC_NAMES)) {
    assert.equal(families.get(name)?.type, name.endsWith('_total') ? 'counter' : 'gauge', name)
  }
})

test('types that are on no topic have no letters, and a detached meter counts no more', async () => {
  await using s = await stage()
  const local = defineJob({ type: 'local', attempts: 1, run: () => Promise.reject(new Error('no')) })
  await s.t.mill.enqueue(local, null)
  await drain(s.t.mill, [local])
  s.metrics.detach()
  await runOut(s, new Error('no'))
  const families = parseExposition(await s.metrics.collectMetrics())
  assert.deepEqual(families.get('worker_dlq_messages_total')?.samples, [])
})

// D66 X029
test('workers of every engine are seen by their heartbeats', async () => {
  await using t = await openForTest()
  const presence = presenceOf(t.mill.engine)
  const none = async () => []
  const watch = new Watch({ presence, lags: none, pending: none, clock: t.clock })
  const { instrument } = watchMetrics({ watch, dlqTopicOf: () => null })
  const metrics = await attachMetrics(t.mill, { instruments: [instrument], clock: t.clock })
  const good = defineJob({ type, run: () => 1 })
  const worker = await t.mill.work([good], { id: 'host:1:a' })
  await t.clock.advance('10s')
  const heartbeat = async () => {
    const labels = { worker: type, worker_instance: 'host:1:a' }
    return sampleValue(await metrics.collectMetrics(), 'worker_heartbeat_timestamp', labels)
  }
  assert.equal(await heartbeat(), t.clock.nowMs() / 1_000)
  await worker.stop()
  await t.clock.advance('1s')
  assert.equal(await heartbeat(), null, 'it has said goodbye')
})
