import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, type TestContext, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tcpProxy } from '../../../test/fixtures/tcp-proxy.ts'
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

async function opened(t: TestContext, server: OwnRedis, options = 'timeout=3000'): Promise<Engine> {
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

describe('faults of Redis', { timeout: 300_000 }, () => {
  test('a server gone in the middle: calls end by their deadline, and nothing is lost', async (t) => {
    const server = await serverFor(t, { aof: 'always' })
    // Long enough for what is answered here also on a busy machine, and short enough to wait for.
    const engine = await opened(t, server, 'timeout=2000')
    const consumer = await consume(engine)
    await engine.enqueue([newJob(), newJob()])
    const [lease] = await take(consumer, 1)
    assert.ok(lease)
    await server.kill()
    const fromMs = performance.now()
    await assert.rejects(engine.enqueue([newJob()]), coded('ERR_STORAGE_OPEN', /nothing was sent/))
    await assert.rejects(engine.ping(), coded('ERR_STORAGE_OPEN', /no server answers/))
    await assert.rejects(consumer.settle([{ lease, outcome: complete }]), coded('ERR_STORAGE_OPEN', /nothing was sent/))
    // Three deadlines, and the rest is the machine's: without a deadline they would not end at all.
    assert.ok(performance.now() - fromMs < 30_000)
    await server.start()
    assert.deepEqual(await again(() => consumer.settle([{ lease, outcome: complete }])), [])
    assert.equal((await take(consumer, 5)).length, 1)
    assert.equal((await engine.counts()).greet?.completed, 1)
  })

  test('a worker whose server restarts, or comes back empty, goes on by itself', async (t) => {
    const server = await serverFor(t, { aof: 'always' })
    const greet = defineJob({ type: 'greet', run: async () => 'done' })
    const mill = await open(`${server.url}?prefix=${freshPrefix()}&timeout=3000`)
    t.after(() => mill.close())
    const worker = await mill.work([greet])
    assert.equal(await mill.result(await mill.enqueue(greet, {}), { timeout: '60s' }), 'done')
    await server.kill()
    await server.start()
    const kept = await again(() => mill.enqueue(greet, {}))
    assert.equal(await again(() => mill.result(kept, { timeout: '60s' })), 'done')
    await server.stop()
    await server.start('gone')
    const fresh = await again(() => mill.enqueue(greet, {}))
    assert.equal(await again(() => mill.result(fresh, { timeout: '60s' })), 'done')
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

  test('a job whose hash somebody deleted by hand does not stop the others, waiting or running', async (t) => {
    const server = await serverFor(t)
    const prefix = freshPrefix()
    const engine = await openEngine(`${server.url}?prefix=${prefix}`, settings)
    t.after(() => engine.close())
    const consumer = await consume(engine)
    const jobs = [newJob(), newJob(), newJob()]
    await engine.enqueue(jobs)
    const drop = (id: string | undefined, ...more: readonly string[]): Promise<unknown> =>
      withRedis(server.url, (redis) =>
        redis.del(`${prefix}:greet:${id}`, ...more.map((name) => `${prefix}:greet:${id}:${name}`)),
      )
    await drop(jobs[0]?.id)
    const leases = await take(consumer, 3)
    assert.deepEqual(
      leases.map(({ job }) => job.id),
      [jobs[1]?.id, jobs[2]?.id],
    )
    await drop(jobs[1]?.id, 'lock')
    await drop(jobs[2]?.id)
    const lost = await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
    assert.equal(lost.length, 2)
    // What is left of it goes when its lease would have run out.
    await drop(jobs[2]?.id, 'lock')
    const reaper = await engine.consume({ types: 'every', worker: 'reaper' })
    assert.deepEqual(await reaper.claim({ max: 10, waitMs: 0, signal: never, from: 'expired' }), [])
    await engine.enqueue([newJob()])
    assert.equal((await take(consumer, 3)).length, 1)
    const { ready, inProgress, completed, dead } = (await engine.counts()).greet ?? {}
    assert.deepEqual([ready, inProgress, completed, dead], [0, 1, 0, 0])
  })

  for (const seen of ['sees it', 'sees nothing'] as const) {
    test(`where the server ${seen} and no answer comes back, calls end and a repetition counts once`, async (t) => {
      const server = await serverFor(t)
      const prefix = freshPrefix()
      const proxy = await tcpProxy(t, `${server.url}?prefix=${prefix}&timeout=1500`)
      const engine = await openEngine(proxy.url, settings)
      t.after(() => engine.close())
      const consumer = await consume(engine)
      // So that the server knows the scripts: of one that it does not know it would see no more than a name.
      await engine.enqueue([newJob()])
      await consumer.settle((await take(consumer, 1)).map((lease) => ({ lease, outcome: complete })))
      const job = newJob()
      proxy.freezeAt(job.id, seen)
      await assert.rejects(engine.enqueue([job]), coded('ERR_STORAGE_FAILED', /unknown/))
      const [receipt] = await again(() => engine.enqueue([job]))
      assert.deepEqual(receipt, { id: job.id, status: seen === 'sees it' ? 'duplicate' : 'enqueued' })
      const [lease] = await again(() => take(consumer, 5))
      assert.ok(lease)
      proxy.freezeAt(lease.token, seen)
      await assert.rejects(consumer.settle([{ lease, outcome: complete }]), coded('ERR_STORAGE_FAILED', /unknown/))
      const lost = await again(() => consumer.settle([{ lease, outcome: complete }]))
      assert.equal(lost.length, seen === 'sees it' ? 1 : 0)
      const { ready, inProgress, completed } = (await engine.counts()).greet ?? {}
      assert.deepEqual([ready, inProgress, completed], [0, 0, 2])
    })
  }

  test('an engine that is closed while its server is away lets the process end', async (t) => {
    const server = await serverFor(t)
    const program = `
      import { openEngine } from ${JSON.stringify(new URL('../../engine/open.ts', import.meta.url).href)}
      import { systemClock } from ${JSON.stringify(new URL('../../time/clock.ts', import.meta.url).href)}
      const engine = await openEngine(${JSON.stringify(server.url)}, { clock: systemClock, migrate: false })
      const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 1000 }], worker: 'w' })
      const claiming = consumer.claim({ max: 1, waitMs: 60_000, signal: new AbortController().signal }).catch(() => {})
      process.stdout.write('open')
      await new Promise((resolve) => process.stdin.once('data', resolve))
      await engine.close()
      process.stdin.destroy()
      await claiming`
    const args = ['--input-type=module-typescript', '-e', program]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    await server.kill()
    child.stdin.write('close')
    const fromMs = performance.now()
    const [code] = await once(child, 'exit')
    assert.equal(code, 0)
    // The claim alone would have kept it for 60 s.
    assert.ok(performance.now() - fromMs < 30_000, `it took ${performance.now() - fromMs} ms`)
  })
})
