import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { freshPrefix, type OwnRedis, type RedisSettings, startRedis, withRedis } from '../../../test/servers/redis.ts'
import type { Consumer, Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import type { Lease } from '../../engine/outcome.ts'
import { EngineError } from '../../errors.ts'
import { defineJob, open } from '../../index.ts'
import { systemClock } from '../../time/clock.ts'

const never = new AbortController().signal
const settings = { clock: systemClock, migrate: false }
const complete = { kind: 'complete', result: '1', durationMs: 1 } as const
const coded = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof EngineError && error.code === code && text.test(error.message)

async function serverFor(t: TestContext, with_: RedisSettings = {}): Promise<OwnRedis> {
  const server = await startRedis(with_)
  t.after(() => server.end())
  return server
}

async function opened(t: TestContext, server: OwnRedis, options = 'timeout=1000'): Promise<Engine> {
  const engine = await openEngine(`${server.url}?prefix=${freshPrefix()}&${options}`, settings)
  t.after(() => engine.close())
  return engine
}

const consume = (engine: Engine): Promise<Consumer> =>
  engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })

const take = (consumer: Consumer, max: number, waitMs = 0): Promise<readonly Lease[]> =>
  consumer.claim({ max, waitMs, signal: never })

/** Until the driver has found the server again. */
async function again<Value>(run: () => Promise<Value>): Promise<Value> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await run()
    } catch (error) {
      if (tries === 10) throw error
    }
  }
}

describe('faults of Redis', { timeout: 90_000 }, () => {
  test('a server gone in the middle: calls end by their deadline, a claim that waits goes on, nothing is lost', async (t) => {
    const server = await serverFor(t, { aof: 'always' })
    const engine = await opened(t, server, 'timeout=400')
    const consumer = await consume(engine)
    await engine.enqueue([newJob(), newJob()])
    const [lease] = await take(consumer, 1)
    assert.ok(lease)
    await server.kill()
    const fromMs = performance.now()
    await assert.rejects(engine.enqueue([newJob()]), coded('ERR_STORAGE_OPEN', /nothing was sent/))
    await assert.rejects(engine.ping(), coded('ERR_STORAGE_OPEN', /no server answers/))
    await assert.rejects(consumer.settle([{ lease, outcome: complete }]), coded('ERR_STORAGE_OPEN', /nothing was sent/))
    assert.ok(performance.now() - fromMs < 3_000)
    await server.start()
    assert.deepEqual(await again(() => consumer.settle([{ lease, outcome: complete }])), [])
    assert.equal((await take(consumer, 5)).length, 1)
    assert.equal((await engine.counts()).greet?.completed, 1)
  })

  test('a worker whose server restarts, or comes back empty, goes on by itself', async (t) => {
    const server = await serverFor(t, { aof: 'always' })
    const greet = defineJob({ type: 'greet', run: async () => 'done' })
    const mill = await open(`${server.url}?prefix=${freshPrefix()}&timeout=1000`)
    t.after(() => mill.close())
    const worker = await mill.work([greet])
    assert.equal(await mill.result(await mill.enqueue(greet, {}), { timeout: '20s' }), 'done')
    await server.kill()
    await server.start()
    const kept = await again(() => mill.enqueue(greet, {}))
    assert.equal(await again(() => mill.result(kept, { timeout: '20s' })), 'done')
    await server.stop()
    await server.start('gone')
    const fresh = await again(() => mill.enqueue(greet, {}))
    assert.equal(await again(() => mill.result(fresh, { timeout: '20s' })), 'done')
    await worker.stop()
  })

  test('a result for a job that the server no longer knows is refused, and nothing comes back to life', async (t) => {
    const server = await serverFor(t)
    const engine = await opened(t, server, 'timeout=5000')
    const consumer = await consume(engine)
    await engine.enqueue([newJob()])
    const [lease] = await take(consumer, 1)
    assert.ok(lease)
    await server.kill()
    await server.start('gone')
    const lost = await again(() => consumer.settle([{ lease, outcome: complete }]))
    assert.equal(lost.length, 1)
    assert.deepEqual(await consumer.renew([lease], 60_000).then((losses) => losses.length), 1)
    assert.equal((await engine.counts()).greet?.completed ?? 0, 0)
  })

  test('a server whose memory is full refuses new jobs loudly and lets workers finish, which makes room', async (t) => {
    const server = await serverFor(t, { maxmemory: 6_000_000 })
    const engine = await opened(t, server, 'timeout=5000')
    const consumer = await consume(engine)
    const batch = () => Array.from({ length: 20 }, () => newJob({ payload: JSON.stringify('x'.repeat(2_000)) }))
    let stored = 0
    const fill = async (): Promise<void> => {
      for (;;) stored += (await engine.enqueue(batch())).length
    }
    await assert.rejects(fill(), coded('ERR_STORAGE_FULL', /maxmemory.*nothing of this call was stored/))
    assert.ok(stored > 100)
    assert.equal((await engine.counts()).greet?.ready, stored)
    const leases = await take(consumer, 10)
    assert.equal(leases.length, 10)
    assert.deepEqual(await consumer.renew(leases, 60_000), [])
    const [first, second, ...rest] = leases
    assert.ok(first && second)
    assert.equal(await consumer.report(first, '1'), true)
    const error = { name: 'Error', code: null, message: 'no', stack: null }
    assert.deepEqual(await consumer.settle([{ lease: first, outcome: { kind: 'dead', error } }]), [])
    assert.deepEqual(await consumer.settle([{ lease: second, outcome: { kind: 'retry', delayMs: 0, error } }]), [])
    assert.deepEqual(await consumer.settle(rest.map((lease) => ({ lease, outcome: { ...complete, keep: 0 } }))), [])
    await withRedis(server.url, (redis) => redis.config('SET', 'maxmemory', '12000000'))
    assert.equal((await engine.enqueue(batch())).length, 20)
  })
})
