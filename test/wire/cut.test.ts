import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { openEngine } from '../../src/engine/open.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { EngineError } from '../../src/errors.ts'
import { defineJob, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { tcpProxy } from '../fixtures/tcp-proxy.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'

describe('connections that break', { timeout: 300_000 }, () => {
  const never = new AbortController().signal
  const settings = { clock: systemClock, migrate: false }
  let [direct, schema] = ['', '']

  before(async () => {
    ;({ url: direct, schema } = schemaUrl(await postgresServer()))
    await migrate(direct, settings)
  })
  after(() => dropSchema(direct, schema))

  const isLost = (error: unknown): boolean => error instanceof EngineError && error.code === 'ERR_STORAGE_FAILED'

  async function stage(t: TestContext) {
    await query(direct, `delete from ${schema}.jobs`)
    const proxy = await tcpProxy(t, direct)
    const engine = await openEngine(`${proxy.url}&prepare=false&listen=false&pool=2`, settings)
    t.after(() => engine.close())
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    return { proxy, engine, consumer }
  }

  test('in the middle of an enqueue, a claim, a renewal and a settle: each is told, and works again at once', async (t) => {
    const { proxy, engine, consumer } = await stage(t)
    const job = newJob()
    proxy.resetAt('INSERT INTO', 1)
    await assert.rejects(engine.enqueue([job]), isLost)
    assert.equal((await engine.enqueue([job]))[0]?.status, 'enqueued')
    proxy.resetAt('FOR UPDATE SKIP LOCKED', 1)
    await assert.rejects(consumer.claim({ max: 1, waitMs: 0, signal: never }), isLost)
    const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: never })
    assert.ok(lease)
    proxy.resetAt('lease_expires_at =', 1)
    await assert.rejects(consumer.renew([lease], 60_000), isLost)
    assert.deepEqual(await consumer.renew([lease], 60_000), [])
    proxy.resetAt(`status = 'completed'`, 1)
    const settlements = [{ lease, outcome: { kind: 'complete', result: '1', durationMs: 1 } as const }]
    await assert.rejects(consumer.settle(settlements), isLost)
    assert.deepEqual(await consumer.settle(settlements), [])
    assert.equal(proxy.resets, 4)
  })

  test('a server outage longer than every timeout: the worker goes on, and nothing is lost', async (t) => {
    await query(direct, `delete from ${schema}.jobs`)
    const proxy = await tcpProxy(t, direct)
    const mill = await open(proxy.url)
    t.after(() => mill.close())
    const outside = await open(direct)
    t.after(() => outside.close())
    let starts = 0
    const job = defineJob({
      type: 'steady',
      attempts: 10,
      lease: '2s',
      backoff: { kind: 'fixed', delay: '50ms' },
      async run() {
        starts += 1
        // From within a run: jobs are in flight when the wire is cut, and most are still to come.
        if (starts === 60) proxy.cut()
        await systemClock.sleep(20)
      },
    })
    await outside.enqueueMany(
      job,
      Array.from({ length: 1_000 }, () => null),
    )
    const faults = new Set<string>()
    mill.events.on('worker.error', ({ during }) => faults.add(during))
    await mill.work([job], { concurrency: 10, reap: '500ms' })
    const completed = async (): Promise<number> => (await outside.counts()).steady?.completed ?? 0
    while (starts < 60) await systemClock.sleep(20)
    // A call waits five seconds for a connection; leases end in two.
    await systemClock.sleep(6_000)
    await assert.rejects(mill.counts(), EngineError)
    assert.ok((await completed()) < 1_000, 'it was over before the wire was cut')
    while (!faults.has('claim') || !faults.has('settle')) await systemClock.sleep(20)
    proxy.thaw()
    while ((await completed()) < 1_000) await systemClock.sleep(50)
  })
})
