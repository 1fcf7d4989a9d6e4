/** Servers that stand still while a claim is on its way: it is carried out when its caller has given up. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { defineJob, open } from 'millrace'
import { migrate } from '../../src/engines/postgres/module.ts'
import { connect } from '../../src/engines/redis/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { until } from '../bullmq/plain-queue.ts'
import { tcpProxy } from '../fixtures/tcp-proxy.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'
import { startRedis } from '../servers/redis.ts'

const signal = new AbortController().signal
const types = [{ type: 'mail', leaseMs: 600_000 }]
const mail = defineJob({ type: 'mail', attempts: 1 })

describe('a claim that its server carries out too late', { timeout: 120_000 }, () => {
  test('Redis stood still: the jobs are ready again with no start counted, and say why', async (t) => {
    const server = await startRedis({ settings: { 'enable-debug-command': 'yes' } })
    t.after(() => server.end())
    const url = `${server.url}/0?prefix=late`
    const mill = await open(url)
    t.after(() => mill.close())
    const engine = await connect(`${url}&timeout=500`, { clock: systemClock, migrate: true })
    t.after(() => engine.close())
    const consumer = await engine.consume({ types, worker: 'w' })
    // From here on the server knows the script.
    assert.deepEqual(await consumer.claim({ max: 1, waitMs: 0, signal }), [])
    const { id } = await mill.enqueue(mail, {})
    const sleeper = new Redis(server.url)
    t.after(() => sleeper.disconnect())
    await sleeper.ping()
    // On its way before the claim, so that the server reads it first.
    const slept = sleeper.call('DEBUG', 'SLEEP', '2')
    await new Promise((resolve) => setImmediate(resolve))
    await assert.rejects(consumer.claim({ max: 1, waitMs: 0, signal }), { code: 'ERR_STORAGE_FAILED' })
    await slept
    await until(async () => (await mill.history(id)).some(({ name }) => name === 'released'))
    const released = (await mill.history(id)).find(({ name }) => name === 'released')
    assert.equal(released?.detail?.reason, 'the answer to its claim was lost')
    const [lease] = await consumer.claim({ max: 1, waitMs: 5_000, signal })
    assert.deepEqual([lease?.job.id, lease?.attempt], [id, 1])
  })

  test('Postgres did not answer in time: the jobs are ready again with no start counted', async (t) => {
    const server = await postgresServer()
    const { url, schema } = schemaUrl(server)
    t.after(() => dropSchema(server.url, schema))
    await migrate(url, { clock: systemClock, migrate: true })
    const mill = await open(url)
    t.after(() => mill.close())
    const { id } = await mill.enqueue(mail, {})
    const proxy = await tcpProxy(t, url)
    const engine = (await open(`${proxy.url}&timeout=500`)).engine
    t.after(() => engine.close())
    const consumer = await engine.consume({ types, worker: 'w' })
    proxy.freezeAt('lease_token = $7', 'sees it')
    await assert.rejects(consumer.claim({ max: 1, waitMs: 0, signal }), { code: 'ERR_STORAGE_BUSY' })
    await until(async () => (await mill.history(id)).some(({ name }) => name === 'released'))
    const [lease] = await consumer.claim({ max: 1, waitMs: 5_000, signal })
    assert.deepEqual([lease?.job.id, lease?.attempt], [id, 1])
  })
})
