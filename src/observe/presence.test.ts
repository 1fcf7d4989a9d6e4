import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryPresence } from '../engine/memory-records.ts'
import type { Beat, Presence } from '../engine/presence.ts'
import { Events } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { capturingLog, type LogLine } from '../testing/capture.ts'
import { openForTest } from '../testing/open-for-test.ts'
import { TestClock } from '../testing/test-clock.ts'
import { attachPresence } from './presence.ts'

const mail = defineJob({ type: 'mail', run: () => 1 })
const sms = defineJob({ type: 'sms', run: () => 1 })

interface Said {
  readonly beats: readonly Beat[]
  readonly ttlMs: number
}

/** Keeps what it is told besides keeping it alive. */
class Recorder extends MemoryPresence {
  readonly said: Said[] = []

  override async beat(beats: readonly Beat[], ttlMs: number): Promise<void> {
    this.said.push({ beats, ttlMs })
    await super.beat(beats, ttlMs)
  }
}

// D02 D03 D04
test('a worker says each of its types as soon as it starts', async () => {
  await using t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  attachPresence(t.mill, { presence, clock: t.clock })
  const worker = await t.mill.work([mail, sms], { id: 'w1' })
  const nowMs = t.clock.nowMs()
  const beat = { instance: 'w1', status: 'RUNNING', atMs: nowMs, lastJobAtMs: null, lag: null, stoppingSinceMs: null }
  assert.deepEqual(await presence.list(), [
    { ...beat, type: 'mail' },
    { ...beat, type: 'sms' },
  ])
  await worker.stop()
  assert.deepEqual(await presence.list(), [])
})

// D05 D06
test('a worker beats every 10 s for 30 s by default', async () => {
  await using t = await openForTest()
  const presence = new Recorder(t.clock)
  attachPresence(t.mill, { presence, clock: t.clock })
  const startMs = t.clock.nowMs()
  await t.mill.work([mail])
  await t.clock.advance(9_999)
  assert.equal(presence.said.length, 1)
  await t.clock.advance('21s')
  assert.deepEqual(
    presence.said.map(({ beats, ttlMs }) => [(beats[0]?.atMs ?? 0) - startMs, ttlMs]),
    [
      [0, 30_000],
      [10_000, 30_000],
      [20_000, 30_000],
      [30_000, 30_000],
    ],
  )
})

test('one that dies without a goodbye is forgotten after 30 s', async () => {
  const clock = new TestClock()
  const events = new Events()
  const presence = new MemoryPresence(clock)
  const beat: Beat = {
    type: 'mail',
    instance: 'w',
    status: 'RUNNING',
    atMs: 0,
    lastJobAtMs: null,
    lag: null,
    stoppingSinceMs: null,
  }
  attachPresence({ events }, { presence, clock })
  await presence.beat([beat], 30_000)
  await clock.advance(29_999)
  assert.equal((await presence.list()).length, 1)
  await clock.advance(1)
  assert.deepEqual(await presence.list(), [])
})

// D07 X155
test('one that stops says so for 60 s, again and again, and is gone at the end', async () => {
  await using t = await openForTest()
  const presence = new Recorder(t.clock)
  attachPresence(t.mill, { presence, clock: t.clock })
  const gate = Promise.withResolvers<void>()
  const slow = defineJob({ type: 'slow', timeout: '1h', run: () => gate.promise })
  const started = t.mill.events.next('job.started')
  const worker = await t.mill.work([slow], { drain: '3m' })
  await t.mill.enqueue(slow, null)
  await started
  const sinceMs = t.clock.nowMs()
  presence.said.length = 0
  const stopped = worker.stop()
  await t.clock.advance('125s')
  // D13 looks for one that has been stopping for two minutes: it must still be there, and say since when.
  const [beat] = await presence.list()
  assert.equal(beat?.status, 'SHUTTING_DOWN')
  assert.equal(beat?.stoppingSinceMs, sinceMs)
  assert.equal(beat?.atMs, sinceMs + 120_000)
  assert.equal(presence.said.length, 13)
  assert.ok(presence.said.every(({ ttlMs }) => ttlMs === 60_000))
  gate.resolve()
  await stopped
  assert.deepEqual(await presence.list(), [])
  const toldBefore = presence.said.length
  await t.clock.advance('5m')
  assert.equal(presence.said.length, toldBefore)
})

// D08
test('the last job is the last one of the type that was processed', async () => {
  await using t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  attachPresence(t.mill, { presence, clock: t.clock })
  await t.mill.work([mail, sms])
  await t.clock.advance('3s')
  const settled = t.mill.events.next('job.settled')
  const atMs = t.clock.nowMs()
  await t.mill.enqueue(mail, null)
  await settled
  await t.clock.advance('7s')
  const beats = await presence.list()
  assert.deepEqual(
    beats.map(({ type, lastJobAtMs }) => [type, lastJobAtMs]),
    [
      ['mail', atMs],
      ['sms', null],
    ],
  )
})

test('a job given back was not processed', async () => {
  const clock = new TestClock()
  const events = new Events()
  const presence = new MemoryPresence(clock)
  attachPresence({ events }, { presence, clock })
  events.emit('worker.started', { worker: 'w', types: ['mail'], concurrency: 1 })
  const job = { id: 'a', type: 'mail', priority: 5, attempts: 3, tenant: null, runAtMs: 0, createdAtMs: 0 }
  const outcome = { kind: 'release', delayMs: 0, reason: 'shutdown' } as const
  events.emit('job.settled', { job, attempt: 1, worker: 'w', outcome, durationMs: 1, started: true })
  await clock.advance('10s')
  assert.equal((await presence.list())[0]?.lastJobAtMs, null)
})

// D09
test('the lag is asked at each beat; one that cannot be had is unknown', async () => {
  const lags: Record<string, () => number | Promise<number>> = {
    mail: () => 7,
    sms: () => Promise.reject(new Error('no such topic')),
    hung: () => new Promise<number>(() => {}),
  }
  const clock = new TestClock()
  const events = new Events()
  const presence = new MemoryPresence(clock)
  attachPresence({ events }, { presence, clock, lag: (type) => lags[type]?.() ?? 0 })
  events.emit('worker.started', { worker: 'w', types: ['mail', 'sms', 'hung'], concurrency: 1 })
  await clock.advance('1s')
  assert.deepEqual(
    (await presence.list()).map(({ type, lag }) => [type, lag]),
    [
      ['hung', null],
      ['mail', 7],
      ['sms', null],
    ],
  )
  lags.mail = () => 8
  await clock.advance('11s')
  assert.equal((await presence.list())[1]?.lag, 8)
})

test('a beat that was under way does not bring a stopped worker back', async () => {
  const clock = new TestClock()
  const events = new Events()
  const presence = new MemoryPresence(clock)
  const lag = Promise.withResolvers<number>()
  const detach = attachPresence({ events }, { presence, clock, lag: () => lag.promise })
  events.emit('worker.started', { worker: 'w', types: ['mail'], concurrency: 1 })
  events.emit('worker.stopping', { worker: 'w', running: [], cause: 'stop' })
  events.emit('worker.stopped', { worker: 'w' })
  lag.resolve(1)
  await detach()
  assert.deepEqual(await presence.list(), [])
  assert.equal(clock.waiting, 0)
})

for (const [how, fail] of [
  ['fails', () => Promise.reject(new Error('redis is away'))],
  ['hangs', () => new Promise<never>(() => {})],
] as const) {
  test(`a presence that ${how} is logged once and disturbs no worker`, async () => {
    await using t = await openForTest()
    const lines: LogLine[] = []
    const memory = new MemoryPresence(t.clock)
    let isAway = true
    const presence: Presence = {
      beat: (beats, ttlMs) => (isAway ? fail() : memory.beat(beats, ttlMs)),
      gone: (instance, types) => (isAway ? fail() : memory.gone(instance, types)),
      list: () => memory.list(),
    }
    attachPresence(t.mill, { presence, clock: t.clock, log: capturingLog(lines) })
    const settled = t.mill.events.next('job.settled')
    const worker = await t.mill.work([mail])
    await t.mill.enqueue(mail, null)
    assert.equal((await settled).outcome.kind, 'complete')
    await t.clock.advance('65s')
    assert.deepEqual(
      lines.map(({ level, text }) => [level, text]),
      [['warn', 'Presence is unreachable; workers go on without it']],
    )
    isAway = false
    await t.clock.advance('10s')
    assert.equal((await presence.list()).length, 1)
    assert.equal(lines.at(-1)?.text, 'Presence is reachable again')
    isAway = true
    await worker.stop()
    await t.clock.advance('1s')
    assert.equal(lines.length, 3)
  })
}

test('detaching says goodbye for those still at work', async () => {
  await using t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  const detach = attachPresence(t.mill, { presence, clock: t.clock })
  await t.mill.work([mail])
  assert.equal((await presence.list()).length, 1)
  await detach()
  assert.deepEqual(await presence.list(), [])
  await t.clock.advance('1m')
  assert.deepEqual(await presence.list(), [])
})

test('a beat that would be forgotten before the next is refused', () => {
  const mill = { events: new Events() }
  const presence = new MemoryPresence()
  const refusal = { code: 'ERR_OPTION_INVALID' }
  assert.throws(() => attachPresence(mill, { presence, every: '30s' }), refusal)
  assert.throws(() => attachPresence(mill, { presence, stoppingTtl: '5s' }), refusal)
  assert.throws(() => attachPresence(mill, { presence, every: 0 }), refusal)
})
