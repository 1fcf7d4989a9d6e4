import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { openEngine } from '../../src/engine/open.ts'
import { completeScript } from '../../src/engines/redis/complete.ts'
import { enqueueOneScript } from '../../src/engines/redis/enqueue-one.ts'
import { renewScript } from '../../src/engines/redis/leases.ts'
import { claimPlainScript } from '../../src/engines/redis/lua/claim-plain.ts'
import { EngineError } from '../../src/errors.ts'
import { defineJob, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { tcpProxy } from '../fixtures/tcp-proxy.ts'
import { dropPrefix, prefixUrl, redisServer } from '../servers/redis.ts'

describe('connections to Redis that break', { timeout: 300_000 }, () => {
  const never = new AbortController().signal
  const settings = { clock: systemClock, migrate: false }
  const isUnknown = (error: unknown): boolean => error instanceof EngineError && error.code === 'ERR_STORAGE_FAILED'

  async function wire(t: TestContext, timeoutMs: number) {
    const { url, prefix } = prefixUrl(await redisServer())
    t.after(() => dropPrefix(url, prefix))
    const proxy = await tcpProxy(t, `${url}&timeout=${timeoutMs}`)
    return { direct: url, proxy }
  }

  async function stage(t: TestContext, timeoutMs = 3_000) {
    const { proxy } = await wire(t, timeoutMs)
    const engine = await openEngine(proxy.url, settings)
    t.after(() => engine.close())
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    const claim = () => consumer.claim({ max: 1, waitMs: 0, signal: never })
    return { proxy, engine, consumer, claim }
  }

  const completionOf = <Lease>(lease: Lease) => [
    { lease, outcome: { kind: 'complete', result: '1', durationMs: 1 } as const },
  ]

  test('in the middle of an enqueue, a claim, a renewal and a settle: each is told, and works again at once', async (t) => {
    const { proxy, engine, consumer, claim } = await stage(t)
    const job = newJob()
    proxy.resetAt(enqueueOneScript().sha, 1)
    await assert.rejects(engine.enqueue([job]), isUnknown)
    assert.equal((await engine.enqueue([job]))[0]?.status, 'enqueued')
    proxy.resetAt(claimPlainScript().sha, 1)
    await assert.rejects(claim(), isUnknown)
    const [lease] = await claim()
    assert.ok(lease)
    proxy.resetAt(renewScript().sha, 1)
    await assert.rejects(consumer.renew([lease], 60_000), isUnknown)
    assert.deepEqual(await consumer.renew([lease], 60_000), [])
    proxy.resetAt(completeScript().sha, 1)
    await assert.rejects(consumer.settle(completionOf(lease)), isUnknown)
    assert.deepEqual(await consumer.settle(completionOf(lease)), [])
    assert.equal(proxy.resets, 4)
  })

  test('what the server did though its answer never came is not done twice', async (t) => {
    const { proxy, engine, consumer, claim } = await stage(t, 2_000)
    const job = newJob()
    // A server that has never seen a script is sent its text, in another command.
    await engine.enqueue([newJob()])
    const [first] = await claim()
    assert.ok(first)
    await consumer.settle(completionOf(first))
    proxy.freezeAt(enqueueOneScript().sha, 'sees it')
    await assert.rejects(engine.enqueue([job]), isUnknown)
    assert.equal((await engine.enqueue([job]))[0]?.status, 'duplicate')
    const [lease] = await claim()
    assert.equal(lease?.job.id, job.id)
    assert.ok(lease)
    proxy.freezeAt(completeScript().sha, 'sees it')
    await assert.rejects(consumer.settle(completionOf(lease)), isUnknown)
    assert.equal((await consumer.settle(completionOf(lease))).length, 1)
    assert.equal((await engine.counts()).greet?.completed, 2)
    assert.deepEqual(await claim(), [])
  })

  for (const how of ['cut', 'freeze'] as const)
    test(`a wire that was ${how === 'cut' ? how : 'frozen'} under a worker: it goes on by itself, and nothing is lost`, async (t) => {
      const { direct, proxy } = await wire(t, 2_000)
      const [mill, outside] = [await open(proxy.url), await open(direct)]
      t.after(() => Promise.all([mill.close(), outside.close()]))
      let starts = 0
      const job = defineJob({
        type: 'steady',
        attempts: 10,
        lease: '1s',
        backoff: { kind: 'fixed', delay: '50ms' },
        async run() {
          starts += 1
          // From within a run: jobs are in flight when the wire fails, and most are still to come.
          if (starts === 60) proxy[how]()
          await systemClock.sleep(20)
        },
      })
      await outside.enqueueMany(
        job,
        Array.from({ length: 300 }, () => null),
      )
      const faults = new Set<string>()
      mill.events.on('worker.error', ({ during }) => faults.add(during))
      await mill.work([job], { concurrency: 5, reap: '300ms' })
      const completed = async (): Promise<number> => (await outside.counts()).steady?.completed ?? 0
      while (starts < 60) await systemClock.sleep(10)
      // A call waits two seconds for an answer; leases end in one.
      await systemClock.sleep(3_000)
      await assert.rejects(mill.counts(), EngineError)
      assert.ok((await completed()) < 300, 'it was over before the wire failed')
      while (faults.size === 0) await systemClock.sleep(20)
      proxy.thaw()
      while ((await completed()) < 300) await systemClock.sleep(20)
    })
})
