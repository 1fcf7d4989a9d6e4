import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { eventually } from '../../../conformance/process/child.ts'
import { tcpProxy } from '../../../test/fixtures/tcp-proxy.ts'
import { freshPrefix, type OwnRedis, redisServer, startRedis, withRedis } from '../../../test/servers/redis.ts'
import { open } from '../../client/mill.ts'
import { EngineError } from '../../errors.ts'
import { defineJob } from '../../job/definition.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { backgroundClock, systemClock } from '../../time/clock.ts'
import { RedisDatabase } from './database.ts'
import type { RedisClient } from './driver.ts'
import { DEFAULTS, parseUrl } from './options.ts'
import { compose } from './scripts.ts'

const never = new AbortController().signal
const coded = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof EngineError && error.code === code && text.test(error.message)

function databaseAt(t: TestContext, url: string, clock = systemClock): RedisDatabase {
  const { address, options } = parseUrl(url)
  const database = new RedisDatabase({ source: { address }, clock, options })
  t.after(() => database.close())
  return database
}

async function reached(t: TestContext, url: string, clock = systemClock): Promise<RedisDatabase> {
  const database = databaseAt(t, url, clock)
  await database.reach()
  return database
}

async function tookMs(run: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now()
  await run()
  return performance.now() - fromMs
}

const increment = compose('increment', {}, `return { call('INCR', own('count')), prefix, ARGV[1], ARGV[2] }`)

describe('a database in Redis', { timeout: 300_000 }, () => {
  let server: OwnRedis
  before(async () => {
    server = await startRedis({ aof: 'always' })
  })
  after(() => server.end())
  const urlOf = (options = 'timeout=20000'): string => `${server.url}?prefix=${freshPrefix()}&${options}`

  test('runs a script with the prefix, and with the time unless the clock is the real one', async (t) => {
    for (const clock of [systemClock, backgroundClock]) {
      const database = await reached(t, urlOf(), clock)
      assert.deepEqual(await database.run(increment(), ['a']), [1, database.keys.prefix, '', 'a'])
    }
    const clock = new TestClock(1_000_000)
    const database = await reached(t, urlOf(), clock)
    assert.deepEqual(await database.run(increment(), ['a']), [1, database.keys.prefix, String(clock.nowMs()), 'a'])
  })

  test('a server that forgot its scripts is told them again', async (t) => {
    const database = await reached(t, urlOf())
    await database.run(increment(), [''])
    await withRedis(server.url, (redis) => redis.script('FLUSH'))
    assert.deepEqual(await database.run(increment(), ['']), [2, database.keys.prefix, '', ''])
  })

  test('while the server is gone a call is refused at its deadline, and afterwards all goes on', async (t) => {
    const database = await reached(t, urlOf('timeout=1500'))
    await database.run(increment(), [''])
    await server.kill()
    const waited = await tookMs(() =>
      assert.rejects(
        database.run(increment(), ['']),
        coded('ERR_STORAGE_OPEN', /no connection within 1500 ms.*no server answers/),
      ),
    )
    assert.ok(waited < 20_000, `it took ${waited} ms`)
    await server.start()
    // The first may still find the pause between two tries to connect.
    await database.run(increment(), ['']).catch(() => database.run(increment(), ['']))
    assert.ok(
      Number(await database.call('get', `${database.keys.prefix}::count`)) >= 2,
      'the file had what was acknowledged',
    )
  })

  test('a call made while the server is away goes through when it is back in time', async (t) => {
    const database = await reached(t, urlOf('timeout=60000'))
    await server.stop()
    const answer = database.run(increment(), [''])
    await server.start('gone')
    assert.deepEqual(await answer, [1, database.keys.prefix, '', ''])
  })

  test('a script whose answer is lost rejects as unknown and is not sent again', async (t) => {
    const proxy = await tcpProxy(t, urlOf('timeout=1500'))
    const database = await reached(t, proxy.url)
    await database.run(increment(), ['first'])
    proxy.freezeAt('second', 'sees it')
    await assert.rejects(database.run(increment(), ['second']), coded('ERR_STORAGE_FAILED', /unknown/))
    // Neither the silence nor the reset of a connection makes the driver repeat anything.
    assert.equal(await database.call('get', `${database.keys.prefix}::count`), '2')
    proxy.resetAt('third', 1)
    await assert.rejects(database.run(increment(), ['third']), coded('ERR_STORAGE_FAILED', /unknown/))
    assert.equal(await database.call('get', `${database.keys.prefix}::count`), '2')
  })

  test('a new connection on which the server is silent is given up for the next one', async (t) => {
    const proxy = await tcpProxy(t, urlOf('timeout=1500'))
    const database = await reached(t, proxy.url)
    proxy.freeze()
    await assert.rejects(database.ping(), coded('ERR_STORAGE_FAILED', /did not answer in time/))
    await assert.rejects(database.ping(), coded('ERR_STORAGE_OPEN', /no connection within 1500 ms/))
    assert.ok(proxy.frozen >= 2, 'the second connection was silent too')
    proxy.thaw()
    const isAnswered = (): Promise<boolean> =>
      database.ping().then(
        () => true,
        () => false,
      )
    await eventually(isAnswered, 'an answer on a new connection')
  })

  test('calls without number wait for a connection, and each is sent once when it is there', async (t) => {
    const proxy = await tcpProxy(t, urlOf('timeout=30000'))
    const database = await reached(t, proxy.url)
    proxy.cut()
    const calls = Array.from({ length: 500 }, () =>
      database.run(increment(), ['']).then(
        () => true,
        () => false,
      ),
    )
    await once(moment(200), 'abort')
    proxy.thaw()
    const done = (await Promise.all(calls)).filter((isDone) => isDone).length
    assert.equal(Number(await database.call('get', `${database.keys.prefix}::count`)), done)
    assert.ok(done > 0)
  })

  test('a server that has become a replica is left for the next connection, until a primary is there', async (t) => {
    const own = await startRedis()
    t.after(() => own.end())
    const role = (...of: readonly [string, string]): Promise<unknown> =>
      withRedis(own.url, (redis) => redis.replicaof(...of))
    const hasty = await reached(t, `${own.url}?timeout=2000`)
    const patient = await reached(t, `${own.url}?timeout=60000`)
    const connection = await hasty.call('client', 'id')
    await role('127.0.0.1', String(server.port))
    await assert.rejects(hasty.run(increment(), ['']), coded('ERR_STORAGE_READONLY', /address of the primary/))
    assert.notEqual(await hasty.call('client', 'id'), connection)
    const refused = coded('ERR_STORAGE_READONLY', /replica of 127\.0\.0\.1:\d+; give the address/)
    await assert.rejects(reached(t, own.url), refused)
    const answer = patient.run(increment(), [''])
    await role('NO', 'ONE')
    assert.deepEqual(await answer, [1, patient.keys.prefix, '', ''])
  })

  test('a wait for work ends with an entry, at its time, on abort, on close and without a server', async (t) => {
    const database = await reached(t, urlOf('timeout=2000'))
    const [one, other] = ['one', 'other'].map((name) => `${database.keys.prefix}:${name}`)
    assert.ok(one !== undefined && other !== undefined)
    const connection = database.blockingConnection()
    const popped = connection.pop([one, other], 20_000, never)
    await database.call('zadd', other, 7, 'member')
    assert.deepEqual(await popped, { key: other, member: 'member', score: 7 })
    assert.equal(await connection.pop([one], 50, never), null)
    assert.equal(await connection.pop([one], 20_000, AbortSignal.timeout(50)), null)
    const again = connection.pop([one], 20_000, never)
    await database.call('zadd', one, 1, 'a')
    assert.equal((await again)?.member, 'a')
    const ended = database.blockingConnection().pop([one], 20_000, never)
    await server.kill()
    assert.equal(await connection.pop([one], 100, never), null)
    assert.equal(await connection.pop([one], 20_000, AbortSignal.timeout(50)), null)
    await server.start()
    database.close()
    assert.equal(await ended, null)
  })

  test('a wait on a dead connection is given up, and the next one works', async (t) => {
    const proxy = await tcpProxy(t, urlOf('timeout=1500'))
    const database = await reached(t, proxy.url)
    const key = `${database.keys.prefix}:one`
    const connection = database.blockingConnection()
    proxy.freezeAt('bzpopmin', 'sees it')
    const waited = await tookMs(async () => assert.equal(await connection.pop([key], 100, never), null))
    assert.ok(waited < 20_000, `it took ${waited} ms`)
    await database.call('zadd', key, 1, 'a')
    assert.equal((await connection.pop([key], 10_000, never))?.member, 'a')
  })

  test('a listener hears what is said, and is told when it hears again after an outage', async (t) => {
    const database = await reached(t, urlOf('timeout=20000'))
    const heard: string[] = []
    let resumed = Promise.withResolvers<void>()
    let arrived = Promise.withResolvers<void>()
    const stop = database.listen('channel', {
      hear: (message) => {
        heard.push(message)
        arrived.resolve()
      },
      resumed: () => resumed.resolve(),
    })
    await resumed.promise
    await database.call('publish', 'channel', 'one')
    await arrived.promise
    resumed = Promise.withResolvers<void>()
    arrived = Promise.withResolvers<void>()
    await server.kill()
    await server.start()
    await resumed.promise
    await database.call('publish', 'channel', 'two')
    await arrived.promise
    assert.deepEqual(heard, ['one', 'two'])
    stop()
    const second = Promise.withResolvers<void>()
    database.listen('other', { hear: () => second.resolve() })
    while ((await database.call('publish', 'other', '')) === 0) await database.call('publish', 'channel', 'three')
    await second.promise
    assert.deepEqual(heard, ['one', 'two'])
  })

  test('closing ends every connection at once, and twice is harmless', async (t) => {
    const url = urlOf()
    const database = await reached(t, url)
    const names = (): Promise<number> =>
      withRedis(server.url, async (redis) => String(await redis.client('LIST')).match(/name=millrace/g)?.length ?? 0)
    const popped = database.blockingConnection().pop(['nothing'], 20_000, never)
    const resumed = Promise.withResolvers<void>()
    database.listen('channel', { hear: () => {}, resumed: resumed.resolve })
    await resumed.promise
    assert.ok((await names()) >= 2)
    database.close()
    database.close()
    assert.equal(await popped, null)
    while ((await names()) > 0) await once(moment(10), 'abort')
    await assert.rejects(database.run(increment(), ['']), /closed/)
  })

  test('a client of the user’s own tells the way, and is neither used nor ended', async (t) => {
    const prefix = freshPrefix()
    const client = new Redis(server.url, { lazyConnect: true, keyPrefix: '' })
    t.after(() => client.disconnect())
    const open = (own: Redis): RedisDatabase =>
      new RedisDatabase({
        source: { client: own as unknown as RedisClient },
        clock: systemClock,
        options: { ...DEFAULTS, prefix },
      })
    const database = open(client)
    await database.reach()
    await database.run(increment(), [''])
    database.close()
    assert.equal(client.status, 'wait')
    assert.equal(await client.get(`${prefix}::count`), '1')
    const prefixed = new Redis(server.url, { lazyConnect: true, keyPrefix: 'app:' })
    t.after(() => prefixed.disconnect())
    await assert.rejects(open(prefixed).reach(), coded('ERR_ENGINE_URL', /keyPrefix 'app:'/))
  })
})

for (const ending of ['quit', 'disconnect'] as const) {
  test(`a client of the user’s own that ends by ${ending} leaves a worker as it is`, async (t) => {
    const client = new Redis((await redisServer()).url)
    const mill = await open(client)
    t.after(() => mill.close())
    const { promise: ran, resolve } = Promise.withResolvers<void>()
    const job = defineJob({ type: freshPrefix(), run: () => resolve() })
    const worker = await mill.work([job], { poll: '50ms' })
    mill.events.on('worker.error', ({ error }) => assert.fail(String(error)))
    await client[ending]()
    await mill.enqueue(job, null)
    await ran
    await worker.stop()
  })
}

/** Aborts after the time: for tests about real connections, where no other event tells that a moment has passed. */
function moment(ms: number): AbortSignal {
  return AbortSignal.timeout(ms)
}
