import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { eventually } from '../../conformance/process/child.ts'
import type { Consumer, Engine } from '../../src/engine/engine.ts'
import { openEngine } from '../../src/engine/open.ts'
import type { Lease } from '../../src/engine/outcome.ts'
import { connectionsOf } from '../../src/engines/postgres/connections.ts'
import { Database } from '../../src/engines/postgres/database.ts'
import { isUnanswered } from '../../src/engines/postgres/faults.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { namesIn } from '../../src/engines/postgres/names.ts'
import { parseUrl } from '../../src/engines/postgres/options.ts'
import { EngineError } from '../../src/errors.ts'
import { defineJob, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { type TcpProxy, tcpProxy } from '../fixtures/tcp-proxy.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'

/** A connection that stands and answers nothing, as behind a firewall that forgot it or a machine that lost its power. */
describe('half-open connections', { timeout: 300_000 }, () => {
  const never = new AbortController().signal
  const settings = { clock: systemClock, migrate: false }
  const complete = { kind: 'complete', result: '1', durationMs: 1 } as const
  let [direct, schema] = ['', '']

  before(async () => {
    ;({ url: direct, schema } = schemaUrl(await postgresServer()))
    await migrate(direct, settings)
  })
  after(() => dropSchema(direct, schema))

  interface Stage {
    readonly proxy: TcpProxy
    readonly engine: Engine
    readonly consumer: Consumer
  }

  /** Statements are not prepared, so that the wire sees their text. A busy machine answers them well within three seconds. */
  async function stage(t: TestContext, options = 'listen=false&pool=2'): Promise<Stage> {
    await query(direct, `delete from ${schema}.jobs`)
    const proxy = await tcpProxy(t, direct)
    const engine = await openEngine(`${proxy.url}&prepare=false&timeout=3000&${options}`, settings)
    t.after(() => engine.close())
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    return { proxy, engine, consumer }
  }

  const isTold = (error: unknown): boolean =>
    error instanceof EngineError && error.code === 'ERR_STORAGE_BUSY' && /did not answer in time/.test(error.message)

  async function claimOne({ engine, consumer }: Stage): Promise<Lease> {
    await engine.enqueue([newJob()])
    const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: never })
    assert.ok(lease)
    return lease
  }

  const rows = (): Promise<readonly { status: string; attempt_count: number }[]> =>
    query(direct, `select status, attempt_count from ${schema}.jobs`)

  for (const seen of ['sees it', 'sees nothing'] as const) {
    test(`a claim ends with an error when the server ${seen} and no answer comes, and the job is not lost`, async (t) => {
      const made = await stage(t)
      const { proxy, engine, consumer } = made
      await engine.enqueue([newJob()])
      proxy.freezeAt('FOR UPDATE SKIP LOCKED', seen)
      await assert.rejects(consumer.claim({ max: 1, waitMs: 0, signal: never }), isTold)
      // What was claimed for nobody its owner takes back, and the start does not count.
      const isReady = async (): Promise<boolean> => (await rows()).every(({ status }) => status === 'queued')
      await eventually(isReady, 'the job in the queue')
      const leases = await consumer.claim({ max: 1, waitMs: 0, signal: never })
      assert.deepEqual(
        leases.map(({ attempt }) => attempt),
        [1],
      )
    })

    test(`a settle ends with an error when the server ${seen} and no answer comes; repeated, it counts at most once`, async (t) => {
      const made = await stage(t)
      const lease = await claimOne(made)
      made.proxy.freezeAt(`status = 'completed'`, seen)
      await assert.rejects(made.consumer.settle([{ lease, outcome: complete }]), isTold)
      const lost = await made.consumer.settle([{ lease, outcome: complete }])
      assert.equal(lost.length, seen === 'sees it' ? 1 : 0)
      assert.deepEqual(await rows(), [{ status: 'completed', attempt_count: 1 }])
    })

    test(`a renewal ends with an error when the server ${seen} and no answer comes, and the next one holds`, async (t) => {
      const made = await stage(t)
      const lease = await claimOne(made)
      made.proxy.freezeAt('lease_expires_at =', seen)
      await assert.rejects(made.consumer.renew([lease], 60_000), isTold)
      assert.deepEqual(await made.consumer.renew([lease], 60_000), [])
      assert.deepEqual(await made.consumer.settle([{ lease, outcome: complete }]), [])
    })
  }

  test('a statement that was sent behind one without an answer is told the same', async (t) => {
    const proxy = await tcpProxy(t, direct)
    const { source } = await connectionsOf({ address: parseUrl(proxy.url) })
    t.after(() => source.close())
    const database = new Database({
      ...{ source, names: namesIn(schema), clock: systemClock, prepare: false, answerMs: 1_000 },
    })
    const client = await source.acquire()
    proxy.freezeAt('silent', 'sees nothing')
    const ask = (text: string): Promise<unknown> => database.on(client).rows(() => `SELECT $1::text, '${text}'`)
    const first = assert.rejects(ask('silent'), isUnanswered)
    // Its own time is up later than that of the first.
    await systemClock.sleep(100)
    await assert.rejects(ask('behind'), isUnanswered)
    await first
    client.release(true)
  })

  test('an engine closes though none of its connections answers any more', async (t) => {
    const { proxy, engine } = await stage(t, 'pool=4')
    await Promise.all(Array.from({ length: 8 }, () => engine.counts()))
    proxy.freeze()
    const startedAtMs = systemClock.monotonicMs()
    await engine.close()
    assert.ok(systemClock.monotonicMs() - startedAtMs < 30_000, 'it waited for a goodbye that cannot come')
  })

  test('a worker whose every connection dies in silence goes on when the wire does, and loses nothing', async (t) => {
    await query(direct, `delete from ${schema}.jobs`)
    const proxy = await tcpProxy(t, direct)
    const mill = await open(`${proxy.url}&timeout=3000`)
    t.after(() => mill.close())
    const outside = await open(direct)
    t.after(() => outside.close())
    const starts = new Map<string, number>()
    const job = defineJob({
      type: 'steady',
      attempts: 10,
      lease: '2s',
      backoff: { kind: 'fixed', delay: '50ms' },
      async run({ job: { id } }) {
        starts.set(id, (starts.get(id) ?? 0) + 1)
        // From within a run, so that at least this one is in flight when the wire dies.
        if (starts.size === 60 && proxy.frozen === 0) proxy.freeze()
        await systemClock.sleep(20)
      },
    })
    const receipts = await outside.enqueueMany(
      job,
      Array.from({ length: 1_500 }, () => null),
    )
    await mill.work([job], { concurrency: 10, keeper: false })
    const steady = async () => (await outside.counts()).steady
    while (proxy.frozen === 0 || ((await steady())?.inProgress ?? 0) === 0) await systemClock.sleep(20)
    // Somebody else recovers what the silent worker held, before the wire comes back.
    const keeper = await outside.keep({ jobs: [job], reap: '200ms', interval: '200ms' })
    while (((await steady())?.inProgress ?? 0) > 0) await systemClock.sleep(20)
    assert.ok(((await steady())?.completed ?? 0) < 1_400, 'it was over before the wire died')
    proxy.thaw()
    for (const { id } of receipts) await outside.result(id, { timeout: '3m' })
    await keeper.stop()
    assert.equal((await steady())?.completed, 1_500)
    const again = [...starts.values()].filter((count) => count > 1).length
    t.diagnostic(`${again} of 1500 jobs were started again`)
    assert.ok(again > 0, 'nothing was interrupted, so nothing was shown')
  })
})
