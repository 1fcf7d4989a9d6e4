import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { startRedis, withRedis } from '../../../test/servers/redis.ts'
import { leadershipOf, schedulesOf } from '../../engine/capability-checks.ts'
import { openEngine } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { assertUsable, parseInfo, RedisDatabase } from './database.ts'
import { parseUrl } from './options.ts'
import { compose } from './scripts.ts'

const coded = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof EngineError && error.code === code && text.test(error.message)

async function reached(t: TestContext, url: string): Promise<RedisDatabase> {
  const { address, options } = parseUrl(url)
  const database = new RedisDatabase({ source: { address }, clock: systemClock, options })
  t.after(() => database.close())
  await database.reach()
  return database
}

async function tookMs(run: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now()
  await run()
  return performance.now() - fromMs
}

const increment = compose('increment', {}, `return call('INCR', own('count'))`)

describe('opening Redis', { timeout: 300_000 }, () => {
  test('without a server it is told at once', async (t) => {
    const refused = () =>
      assert.rejects(reached(t, 'redis://127.0.0.1:1'), coded('ERR_STORAGE_OPEN', /no server answers there/))
    // The first one loads the driver.
    await refused()
    const waited = await tookMs(refused)
    // Waiting for the connect timeout would take 4.5 s.
    assert.ok(waited < 4_000, `it took ${waited} ms`)
    await assert.rejects(reached(t, 'redis://nowhere.invalid'), coded('ERR_STORAGE_OPEN', /host is unknown/))
  })

  test('where a server takes the connection and says nothing, it is told within five seconds, whatever the timeout', async (t) => {
    const sockets = new Set<Socket>()
    const mute = createServer((socket) => sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      mute.close()
    })
    const address = mute.address()
    const port = typeof address === 'object' ? address?.port : 0
    const waited = await tookMs(() =>
      assert.rejects(
        reached(t, `redis://127.0.0.1:${port}?timeout=600000`),
        coded('ERR_STORAGE_OPEN', /no connection/),
      ),
    )
    // Its own limit is 4.5 s, the rest is the machine's: the timeout that was given is ten minutes.
    assert.ok(waited < 30_000, `it took ${waited} ms`)
  })

  test('with a wrong password, without one and without rights it is told what to do, and no secret', async (t) => {
    const server = await startRedis({ settings: { requirepass: 'right' } })
    t.after(() => server.end())
    const url = (login: string): string => server.url.replace('//', `//${login}@`)
    await withRedis(url(':right'), (redis) =>
      redis.call('acl', 'setuser', 'guest', 'on', '>pw', '~*', '+ping', '+info', '+client'),
    )
    await assert.rejects(reached(t, server.url), coded('ERR_STORAGE_OPEN', /requires a password/))
    await assert.rejects(
      reached(t, url(':wr0ng')),
      (error) => coded('ERR_STORAGE_OPEN', /user or password is wrong/)(error) && !String(error).includes('wr0ng'),
    )
    const database = await reached(t, url('guest:pw'))
    await assert.rejects(
      database.run(increment(), ['']),
      coded('ERR_STORAGE_OPEN', /lacks the permission for '\w+'.*ACL SETUSER/),
    )
    await (await reached(t, url(':right'))).ping()
    await (await reached(t, url('default:right'))).ping()
    await withRedis(url(':right'), (redis) => redis.call('acl', 'setuser', 'free', 'on', 'nopass', '~*', '+@all'))
    await (await reached(t, url('free'))).ping()
  })

  test('a server that would throw jobs away is refused with the command that changes it', async (t) => {
    const server = await startRedis({ eviction: 'allkeys-lru', maxmemory: 100_000_000 })
    t.after(() => server.end())
    await assert.rejects(
      reached(t, server.url),
      coded('ERR_STORAGE_OPEN', /'allkeys-lru'.*redis-cli CONFIG SET maxmemory-policy noeviction/),
    )
    await withRedis(server.url, (redis) => redis.config('SET', 'maxmemory-policy', 'noeviction'))
    await reached(t, server.url)
  })

  test('an old server and a cluster are refused', () => {
    const info = (text: string) => parseInfo(text.replaceAll('\n', '\r\n'))
    assert.throws(
      () => assertUsable(info('redis_version:6.0.16')),
      coded('ERR_STORAGE_OPEN', /6\.0\.16 is too old.*6\.2\.0/),
    )
    assert.throws(
      () => assertUsable(info('redis_version:7.2.4\ncluster_enabled:1')),
      coded('ERR_STORAGE_OPEN', /cluster/),
    )
    for (const version of ['6.2.0', '6.10.1', '7.0.0', '8.2']) assertUsable(info(`redis_version:${version}`))
  })

  test('the rights that the docs give to a worker are enough for one', async (t) => {
    const server = await startRedis()
    t.after(() => server.end())
    const page = readFileSync(new URL('../../../docs/operating-redis.md', import.meta.url), 'utf8')
    const [, command = ''] = /redis-cli (ACL SETUSER worker .*)/.exec(page) ?? []
    const [name = '', ...args] = command.replaceAll("'", '').split(' ')
    await withRedis(server.url, (redis) => redis.call(name, ...args))
    const engine = await openEngine(server.url.replace('//', '//worker:secret@'), {
      clock: systemClock,
      migrate: false,
    })
    t.after(() => engine.close())
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    const waiting = consumer.claim({ max: 1, waitMs: 20_000, signal: new AbortController().signal })
    await engine.enqueue([newJob()])
    const [lease] = await waiting
    assert.ok(lease)
    assert.deepEqual(await consumer.renew([lease], 60_000), [])
    const cancelled = new Promise<void>((resolve) => consumer.listen({ onLost: () => resolve() }))
    assert.equal(await engine.controls?.cancel(lease.job.id, { who: 'me', reason: 'test' }), true)
    await cancelled
    await leadershipOf(engine).campaign('keeper', 'me', 1_000)
    assert.deepEqual(await schedulesOf(engine).list(), [])
    const unseen = (await engine.diagnose?.())?.filter(({ detail }) => detail.includes('could not be checked'))
    assert.deepEqual(unseen, [])
  })
})
