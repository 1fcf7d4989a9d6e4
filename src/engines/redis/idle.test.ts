/** What a consumer without work asks of the server, and what wakes it. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Redis } from 'ioredis'
import { newJob, scene } from '../../../test/bullmq/scene.ts'
import { dropPrefix, prefixUrl, redisServer } from '../../../test/servers/redis.ts'
import { systemClock } from '../../time/clock.ts'
import { connect } from './module.ts'

const types = [{ type: 'mail', leaseMs: 60_000 }]
const never = new AbortController().signal

/** Two engines on the same data, as in two processes. */
async function twoEngines(t: TestContext) {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const [engine, second] = await Promise.all([1, 2].map(() => connect(url, { clock: systemClock, migrate: true })))
  assert.ok(engine?.records && second?.records)
  t.after(async () => {
    await Promise.all([engine.close(), second.close()])
    await dropPrefix(server.url, prefix)
  })
  return { engine, second, records: engine.records, secondRecords: second.records }
}

/** How often the server has run a script so far. */
async function scriptsRun(redis: Redis): Promise<number> {
  const stats = await redis.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

test('claims that follow each other without work look once', { timeout: 60_000 }, async (t) => {
  const { engine, redis } = await scene(t)
  const consumer = await engine.consume({ types, worker: 'w' })
  const wait = () => consumer.claim({ max: 10, waitMs: 100, signal: never })
  // The marker of a job that is gone by then causes one more look.
  for (let claims = 0; claims < 3; claims += 1) assert.deepEqual(await wait(), [])
  const before = await scriptsRun(redis)
  for (let claims = 0; claims < 5; claims += 1) assert.deepEqual(await wait(), [])
  // One more if the wait at the server ended meanwhile.
  assert.ok((await scriptsRun(redis)) - before <= 1)
  const claiming = consumer.claim({ max: 10, waitMs: 30_000, signal: never })
  await engine.enqueue([newJob()])
  assert.equal((await claiming).length, 1)
})

test('a claim that begins when another has just looked does not look', { timeout: 60_000 }, async (t) => {
  const { engine, redis } = await scene(t)
  const consumer = await engine.consume({ types, worker: 'w' })
  // The time of each is over when its look is answered.
  const look = () => consumer.claim({ max: 10, waitMs: 0.001, signal: never })
  for (let claims = 0; claims < 3; claims += 1) assert.deepEqual(await look(), [])
  const before = await scriptsRun(redis)
  for (let claims = 0; claims < 5; claims += 1) assert.deepEqual(await look(), [])
  assert.ok((await scriptsRun(redis)) - before <= 1)
})

test('a claim that took all there was is not followed by one that looks in vain', { timeout: 60_000 }, async (t) => {
  const { engine, redis } = await scene(t)
  const many = Array.from({ length: 25 }, (_, index) => ({ type: `mail-${index}`, leaseMs: 60_000 }))
  const consumer = await engine.consume({ types: many, worker: 'w' })
  const claim = (waitMs: number) => consumer.claim({ max: 10, waitMs, signal: never })
  await engine.enqueue([{ ...newJob(), type: 'mail-7' }])
  assert.equal((await claim(30_000)).length, 1)
  const before = await scriptsRun(redis)
  assert.deepEqual(await claim(200), [])
  assert.equal((await scriptsRun(redis)) - before, 0)
  const waiting = claim(30_000)
  await engine.enqueue([{ ...newJob(), type: 'mail-23' }])
  assert.equal((await waiting).length, 1)
})

test('one look follows a wait at the server that ended while nobody claimed', { timeout: 60_000 }, async (t) => {
  const { engine, redis } = await scene(t, '&poll=400')
  const consumer = await engine.consume({ types, worker: 'w' })
  const claim = (waitMs: number) => consumer.claim({ max: 10, waitMs, signal: never })
  // The marker of a job that is gone by then causes one more look.
  for (let claims = 0; claims < 3; claims += 1) assert.deepEqual(await claim(100), [])
  const before = await scriptsRun(redis)
  await systemClock.sleep(600)
  assert.deepEqual(await claim(50), [])
  assert.equal((await scriptsRun(redis)) - before, 1)
})

test('where no queue is paused, no look follows a second later', { timeout: 60_000 }, async (t) => {
  const { engine, redis } = await scene(t, '&poll=60000')
  const consumer = await engine.consume({ types, worker: 'w' })
  for (let claims = 0; claims < 3; claims += 1) {
    assert.deepEqual(await consumer.claim({ max: 10, waitMs: 100, signal: never }), [])
  }
  const before = await scriptsRun(redis)
  // It looks, because another limit may allow more.
  assert.deepEqual(await consumer.claim({ max: 10, waitMs: 1_300, perType: { mail: 5 }, signal: never }), [])
  assert.equal((await scriptsRun(redis)) - before, 1)
})

test('a list of records brings the time along', { timeout: 60_000 }, async (t) => {
  const { engine, redis } = await scene(t)
  const { records } = engine
  assert.ok(records)
  // The first look at the server's clock has nothing to compare with.
  await records.list('schedule')
  const before = await scriptsRun(redis)
  // Longer than renewals trust a look.
  await systemClock.sleep(2_100)
  await records.list('schedule')
  await records.list('pause')
  assert.equal((await scriptsRun(redis)) - before, 2)
})

test('only who runs jobs listens for cancellations', { timeout: 60_000 }, async (t) => {
  const { engine, redis, prefix } = await scene(t)
  const listeners = async (): Promise<number> => {
    const [, count] = await redis.pubsub('NUMSUB', `${prefix}::lost`)
    return Number(count)
  }
  const reaper = await engine.consume({ types: 'every', worker: 'r' })
  assert.equal(await listeners(), 0)
  await engine.consume({ types, worker: 'w' })
  assert.equal(await listeners(), 1)
  await reaper.close()
  assert.equal(await listeners(), 1)
})

test('a claim that found nothing starts a delayed job when it is due', { timeout: 60_000 }, async (t) => {
  const { engine } = await scene(t)
  const consumer = await engine.consume({ types, worker: 'w' })
  await engine.enqueue([{ ...newJob(), delayMs: 400 }])
  const fromMs = systemClock.monotonicMs()
  let leases = await consumer.claim({ max: 1, waitMs: 50, signal: never })
  while (leases.length === 0) leases = await consumer.claim({ max: 1, waitMs: 50, signal: never })
  assert.ok(systemClock.monotonicMs() - fromMs < 3_000)
})

test('a claim of other types than the last one looks', { timeout: 60_000 }, async (t) => {
  const { engine } = await scene(t)
  const consumer = await engine.consume({ types, worker: 'w' })
  await engine.enqueue([newJob()])
  const claim = (perType: Record<string, number>) => consumer.claim({ max: 1, waitMs: 50, perType, signal: never })
  assert.deepEqual(await claim({ mail: 0 }), [])
  assert.equal((await claim({ mail: 1 })).length, 1)
})

test('a marker that a consumer without a claim hears is left to others', { timeout: 60_000 }, async (t) => {
  const { engine, second } = await twoEngines(t)
  const busy = await engine.consume({ types, worker: 'busy' })
  // Its wait at the server goes on after the claim, and is the first in the line.
  assert.deepEqual(await busy.claim({ max: 1, waitMs: 50, signal: never }), [])
  const idle = await second.consume({ types, worker: 'idle' })
  assert.deepEqual(await idle.claim({ max: 1, waitMs: 50, signal: never }), [])
  const fromMs = systemClock.monotonicMs()
  const claiming = idle.claim({ max: 1, waitMs: 30_000, signal: never })
  await second.enqueue([newJob()])
  assert.equal((await claiming).length, 1)
  const tookMs = systemClock.monotonicMs() - fromMs
  assert.ok(tookMs < 2_000, `the job waited for ${Math.round(tookMs)} ms`)
})

test('a pause is heard by other processes without a look', { timeout: 60_000 }, async (t) => {
  const { records, secondRecords } = await twoEngines(t)
  const heard = Promise.withResolvers<void>()
  let isCounting = false
  const stop = secondRecords.onChange?.(() => {
    if (isCounting) heard.resolve()
  })
  assert.ok(stop)
  t.after(stop)
  // The subscription itself causes a look.
  await systemClock.sleep(300)
  isCounting = true
  const fromMs = systemClock.monotonicMs()
  await records.save('pause', { name: 'mail', revision: '1', body: '{}' }, null)
  await heard.promise
  assert.ok(systemClock.monotonicMs() - fromMs < 1_000)
})
