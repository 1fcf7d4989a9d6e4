/** Waiting for a result is not ended by the connection that it waits on: the job goes on, and so does the wait. */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { migrate } from '../../src/engines/postgres/module.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { until } from '../cli/run.ts'
import { type TcpProxy, tcpProxy } from '../fixtures/tcp-proxy.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'
import { freshPrefix, redisServer } from '../servers/redis.ts'

describe('the result of a job whose connection breaks', { timeout: 300_000 }, () => {
  let [postgresUrl, schema] = ['', '']
  before(async () => {
    ;({ url: postgresUrl, schema } = schemaUrl(await postgresServer()))
    await migrate(postgresUrl, { clock: systemClock, migrate: false })
  })
  after(() => dropSchema(postgresUrl, schema))

  interface Stage {
    readonly proxy: TcpProxy
    /** A client behind the proxy. The worker has a connection of its own. */
    readonly client: Mill
    readonly id: string
    finish(): void
  }

  const URLS = {
    // Not prepared and not listening, so that the client asks again and again, and the wire sees the job's id.
    postgres: async () => ({ direct: postgresUrl, options: '&listen=false&pool=2&prepare=false' }),
    redis: async () => ({ direct: `${(await redisServer()).url}?prefix=${freshPrefix()}`, options: '' }),
  }

  async function stage(t: TestContext, engine: keyof typeof URLS): Promise<Stage> {
    const { direct, options } = await URLS[engine]()
    const gate = Promise.withResolvers<string>()
    const job = defineJob({ type: 'slow', run: () => gate.promise })
    const there = await open(direct)
    t.after(() => there.close())
    await there.work([job])
    const proxy = await tcpProxy(t, direct)
    const client = await open(proxy.url + options)
    t.after(() => client.close())
    const { id } = await there.enqueue(job, null)
    return { proxy, client, id, finish: () => gate.resolve('done') }
  }

  for (const engine of ['postgres', 'redis'] as const) {
    test(`it is waited for over broken connections (${engine})`, async (t) => {
      const { proxy, client, id, finish } = await stage(t, engine)
      proxy.resetAt(id, 3)
      const result = client.result(id, { timeout: '2m' })
      await Promise.race([until(() => proxy.resets === 3), result])
      finish()
      assert.equal(await result, 'done')
    })

    test(`its own time-out holds while the server answers nothing (${engine})`, async (t) => {
      const { proxy, client, id, finish } = await stage(t, engine)
      proxy.freeze()
      await assert.rejects(client.result(id, { timeout: '200ms' }), { code: 'ERR_WAIT_TIMEOUT' })
      const aborted = client.result(id, { timeout: '2m', signal: AbortSignal.timeout(200) })
      await assert.rejects(aborted, { name: 'TimeoutError' })
      proxy.cut()
      proxy.thaw()
      finish()
      assert.equal(await client.result(id, { timeout: '2m' }), 'done')
    })
  }
})
