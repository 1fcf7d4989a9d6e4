import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Counts, Engine, Inspector } from '../engine/engine.ts'
import { MemoryPresence } from '../engine/memory-records.ts'
import type { Beat } from '../engine/presence.ts'
import { defineJob } from '../job/definition.ts'
import { drain } from '../testing/drain.ts'
import { openForTest } from '../testing/open-for-test.ts'
import { TestClock } from '../testing/test-clock.ts'
import {
  aggregateStatus,
  checkHealth,
  deadLettersHealth,
  type Health,
  type HealthOptions,
  type HealthStatus,
  type HealthWord,
  healthOf,
  pingHealth,
  queuesHealth,
  workersHealth,
  workersOf,
} from './health.ts'
import { attachPresence } from './presence.ts'

const WORDS: readonly HealthWord[] = ['healthy', 'degraded', 'unhealthy']

interface Stubs {
  readonly pingMs?: number
  readonly everyMs?: number
  readonly ping?: Engine['ping']
  readonly counts?: Engine['counts']
  readonly oldestDue?: Inspector['oldestDue']
  readonly list?: HealthOptions['presence']['list']
}

const beat = (instance: string, status: Beat['status'] = 'RUNNING', type = 'mail'): Beat => ({
  type,
  instance,
  status,
  atMs: 0,
  lastJobAtMs: null,
  lag: null,
  stoppingSinceMs: null,
})

const inspector = (oldestDue: Inspector['oldestDue']): Inspector => ({
  oldestDue,
  ...{ find: async () => [], list: async () => [], history: async () => [], successors: async () => [] },
  waitFor: async () => null,
})

/** All is well but what the stubs say; the clock is moved until the answer is there. */
async function healthWith(
  stubs: Stubs,
  options: Partial<HealthOptions> = {},
): Promise<Health & { readonly tookMs: number }> {
  const clock = new TestClock()
  const sleep = (ms: number): Promise<void> => clock.sleep(ms)
  const { everyMs = 0, pingMs = everyMs } = stubs
  const engine = {
    ping: stubs.ping ?? (() => sleep(pingMs)),
    counts: stubs.counts ?? (() => sleep(everyMs).then(() => ({}))),
    inspector: inspector(stubs.oldestDue ?? (() => sleep(everyMs).then(() => null))),
  }
  const presence = { list: stubs.list ?? (() => sleep(everyMs).then(() => [beat('one')])) }
  let tookMs: number | null = null
  const health = checkHealth({ engine }, { presence, clock, ...options })
  void health.then(() => {
    tookMs = clock.monotonicMs()
  })
  for (let step = 0; tookMs === null && step < 500; step += 1) await clock.advance(10)
  assert.ok(tookMs !== null, 'the check must end within five seconds')
  assert.equal(clock.waiting, 0)
  return { ...(await health), tookMs }
}

const dead = (count: number): Counts => ({ mail: { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: count } })

// A151 A155
test('the worst of the checks wins', () => {
  const checks = (words: readonly HealthWord[]): HealthStatus[] => words.map((status) => ({ status }))
  assert.equal(aggregateStatus(checks(['healthy', 'healthy', 'healthy', 'healthy'])), 'healthy')
  for (let place = 0; place < 4; place += 1) {
    const fine: HealthWord[] = ['healthy', 'healthy', 'healthy', 'healthy']
    const one = (word: HealthWord): HealthWord[] => fine.with(place, word)
    assert.equal(aggregateStatus(checks(one('degraded'))), 'degraded')
    assert.equal(aggregateStatus(checks(one('unhealthy'))), 'unhealthy')
    const degraded: HealthWord[] = ['degraded', 'degraded', 'degraded', 'degraded']
    assert.equal(aggregateStatus(checks(degraded.with(place, 'unhealthy'))), 'unhealthy')
    const status = (word: HealthWord): HealthWord => {
      const [engine, workers, queues, deadLetters] = one(word).map((status) => ({ status }))
      assert.ok(engine && workers && queues && deadLetters)
      return healthOf({ engine, workers, queues, deadLetters }).status
    }
    for (const word of WORDS) assert.equal(status(word), word)
  }
})

// A152 A153
test('an empty system has all four checks and its details are zero', async () => {
  await using t = await openForTest()
  const health = await checkHealth(t.mill, { presence: new MemoryPresence(t.clock), clock: t.clock })
  assert.deepEqual(Object.keys(health.checks), ['engine', 'workers', 'queues', 'deadLetters'])
  assert.deepEqual(health.details, { activeWorkers: 0, totalQueues: 0, oldestWaitingJob: null, deadLetterCount: 0 })
  assert.equal(health.status, 'unhealthy')
})

// A153
test('what a failed check could not find out is zero', () => {
  const failed: HealthStatus = { status: 'unhealthy', error: 'gone' }
  const { details } = healthOf({ engine: failed, workers: failed, queues: failed, deadLetters: failed })
  assert.deepEqual(details, { activeWorkers: 0, totalQueues: 0, oldestWaitingJob: null, deadLetterCount: 0 })
})

// A153
test('a system at work is told as it is', async () => {
  await using t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  attachPresence(t.mill, { presence, clock: t.clock })
  const mail = defineJob({ type: 'mail', run: () => 1 })
  const bad = defineJob({ type: 'bad', attempts: 1, run: () => Promise.reject(new Error('no')) })
  const nobody = defineJob({ type: 'nobody', run: () => 1 })
  await t.mill.enqueue(bad, null)
  await drain(t.mill, [bad])
  await t.mill.enqueue(nobody, null)
  await t.mill.work([mail, bad])
  await t.clock.advance('20m')
  const health = await checkHealth(t.mill, { presence, clock: t.clock })
  assert.deepEqual(health.details, {
    activeWorkers: 1,
    totalQueues: 2,
    oldestWaitingJob: 1_200_000,
    deadLetterCount: 1,
  })
  assert.equal(health.status, 'degraded')
})

// A154
test('the checks run at once', async () => {
  const { tookMs, status } = await healthWith({ everyMs: 100, pingMs: 90 })
  assert.equal(status, 'healthy')
  assert.ok(tookMs >= 100 && tookMs < 200, `${tookMs} ms`)
})

// A156
test('a ping below 100 ms is healthy, from there on degraded', async () => {
  assert.deepEqual(pingHealth(99), { status: 'healthy', latency: 99 })
  assert.deepEqual(pingHealth(100), { status: 'degraded', latency: 100 })
  assert.deepEqual((await healthWith({ pingMs: 99 })).checks.engine, { status: 'healthy', latency: 99 })
  const slow = await healthWith({ pingMs: 100 })
  assert.deepEqual(slow.checks.engine, { status: 'degraded', latency: 100 })
  assert.equal(slow.status, 'degraded')
})

// A157
test('a ping that fails is unhealthy and says why', async () => {
  const health = await healthWith({ ping: () => Promise.reject(new Error('connection refused')) })
  assert.deepEqual(health.checks.engine, { status: 'unhealthy', error: 'connection refused' })
  assert.equal(health.status, 'unhealthy')
  const nameless = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })
  assert.equal((await healthWith({ ping: () => Promise.reject(nameless) })).checks.engine.error, 'ECONNREFUSED')
})

// A158 A159 A160
test('as many workers as are asked for are healthy, fewer degraded, none unhealthy', async () => {
  const workers = async (beats: readonly Beat[], minWorkers?: number) => {
    const options = minWorkers === undefined ? {} : { minWorkers }
    return (await healthWith({ list: async () => beats }, options)).checks.workers
  }
  assert.deepEqual(await workers([beat('one')]), { status: 'healthy', details: { count: 1 } })
  assert.deepEqual(await workers([beat('one'), beat('two')], 3), { status: 'degraded', details: { count: 2 } })
  assert.deepEqual(await workers([beat('one'), beat('two')], 2), { status: 'healthy', details: { count: 2 } })
  assert.deepEqual(await workers([]), { status: 'unhealthy', details: { count: 0 } })
  assert.deepEqual(await workers([], 0), { status: 'healthy', details: { count: 0 } })
  assert.deepEqual(workersHealth(2, 3).status, 'degraded')
})

test('a worker of two types is one, and one that stops takes no more jobs', async () => {
  const beats = [beat('one'), beat('one', 'RUNNING', 'sms'), beat('two', 'SHUTTING_DOWN')]
  assert.equal((await healthWith({ list: async () => beats })).details.activeWorkers, 1)
})

// A161 A162 A163
test('dead letters degrade, and from the threshold on are unhealthy', async () => {
  assert.deepEqual(deadLettersHealth(0, 100), { status: 'healthy', details: { count: 0 } })
  const expected = { 0: 'healthy', 1: 'degraded', 99: 'degraded', 100: 'unhealthy' } as const
  for (const [count, status] of Object.entries(expected)) {
    const health = await healthWith({ counts: async () => dead(Number(count)) })
    assert.deepEqual(health.checks.deadLetters, { status, details: { count: Number(count) } })
    assert.equal(health.status, status)
  }
  const lower = await healthWith({ counts: async () => dead(5) }, { deadLetterThreshold: 5 })
  assert.equal(lower.status, 'unhealthy')
})

// A164
test('a check has a status, and a latency, an error or details only where it has them', async () => {
  const { checks } = await healthWith({ list: () => Promise.reject(new Error('no')) })
  const keys = Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, Object.keys(check)]))
  assert.deepEqual(keys, {
    engine: ['status', 'latency'],
    workers: ['status', 'error'],
    queues: ['status', 'details'],
    deadLetters: ['status', 'details'],
  })
  assert.deepEqual(Object.keys(checks.queues.details ?? {}), ['count', 'oldestWaiting'])
})

// X070
test('a job that is due for more than an hour degrades the queues', () => {
  assert.equal(queuesHealth(1, 3_600_000).status, 'healthy')
  assert.deepEqual(queuesHealth(1, 3_600_001), { status: 'degraded', details: { count: 1, oldestWaiting: 3_600_001 } })
  assert.equal(queuesHealth(1, null).status, 'healthy')
})

const never = () => new Promise<never>(() => {})

// X070
test('a check that hangs ends after a second and is unhealthy', async () => {
  const health = await healthWith({ ping: never, counts: never, oldestDue: never })
  assert.ok(health.tookMs <= 1_010, `${health.tookMs} ms`)
  for (const name of ['engine', 'queues', 'deadLetters'] as const) {
    assert.equal(health.checks[name].status, 'unhealthy')
    assert.match(health.checks[name].error ?? '', /within 1000 ms/)
  }
  assert.equal(health.checks.workers.status, 'healthy')
})

test('a presence that cannot be read does not say that no worker lives', async () => {
  for (const list of [never, () => Promise.reject(new Error('redis is away'))]) {
    const { checks, status } = await healthWith({ list })
    assert.equal(checks.workers.status, 'degraded')
    assert.match(checks.workers.error ?? '', /redis is away|within 1000 ms/)
    assert.equal(status, 'degraded')
  }
})

test('bounds that make no sense are refused', async () => {
  await using t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  const refusal = { code: 'ERR_OPTION_INVALID' }
  await assert.rejects(checkHealth(t.mill, { presence, minWorkers: -1 }), refusal)
  await assert.rejects(checkHealth(t.mill, { presence, deadLetterThreshold: 0 }), refusal)
})

test('every check that is not healthy has a reason', async () => {
  const well = await healthWith({})
  assert.deepEqual(well.reasons, [])
  const health = await healthWith(
    {
      pingMs: 150,
      list: async () => [],
      counts: async () => dead(3),
      oldestDue: () => Promise.reject(new Error('no index')),
    },
    {},
  )
  assert.deepEqual(health.reasons, [
    { check: 'engine', text: 'a ping of the engine takes 150 ms; the limit is 100 ms' },
    { check: 'workers', text: 'no worker runs' },
    { check: 'queues', text: 'the queues cannot be read: no index' },
    { check: 'deadLetters', text: '3 dead letters wait' },
  ])
})

test('where nobody knows how long jobs have waited, a type with waiting jobs and no worker degrades the queues', async () => {
  const clock = new TestClock()
  const waiting = { ready: 3_000, delayed: 0, inProgress: 0, completed: 0, dead: 0 }
  const engine = { ping: async () => {}, counts: async () => ({ mail: waiting, sms: waiting }) }
  const presence = { list: async () => [beat('one', 'RUNNING', 'mail')] }
  const { status, checks, reasons } = await checkHealth({ engine }, { presence, clock })
  assert.deepEqual([status, checks.queues.details?.unclaimed], ['degraded', { sms: 3_000 }])
  assert.deepEqual(reasons, [{ check: 'queues', text: `3000 jobs of 'sms' wait and no worker runs this type` }])
  const one = { ...engine, counts: async () => ({ sms: { ...waiting, ready: 1 } }) }
  assert.match(JSON.stringify(await checkHealth({ engine: one }, { presence, clock })), /1 job of 'sms' waits and no/)
  const held = await checkHealth({ engine }, { presence, clock, paused: async () => ['sms'] })
  assert.deepEqual([held.status, held.reasons], ['healthy', []], 'a paused type waits for no worker')
  const unknown = await checkHealth({ engine }, { presence, clock, paused: () => Promise.reject(new Error('away')) })
  assert.equal(unknown.status, 'degraded')
  const unexpected = await checkHealth({ engine }, { presence, clock, minWorkers: 0 })
  assert.equal(unexpected.status, 'healthy')
})

test('the workers of an engine come from its records, or from what its store knows by itself', async () => {
  await using t = await openForTest()
  assert.equal(workersOf(t.mill.engine).minWorkers, undefined)
  const workers = async () => [{ id: 'member-1', types: ['mail', 'sms'] }]
  const listed = await workersOf({ workers }, t.clock).presence.list()
  assert.deepEqual(
    listed.map(({ instance, type, status }) => [instance, type, status]),
    [
      ['member-1', 'mail', 'RUNNING'],
      ['member-1', 'sms', 'RUNNING'],
    ],
  )
  assert.equal(workersOf({}).minWorkers, 0)
})
