/** The Redis that other tests stand on does what they take for granted. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  dropPrefix,
  freshPrefix,
  keysOf,
  type OwnRedis,
  prefixUrl,
  redisServer,
  startRedis,
  withRedis,
} from './redis.ts'

const started: OwnRedis[] = []
const own = async (settings: Parameters<typeof startRedis>[0]): Promise<OwnRedis> => {
  const server = await startRedis(settings)
  started.push(server)
  return server
}
after(() => Promise.all(started.map((server) => server.end())))

test('one server for the process, and only the keys of a prefix are dropped', async () => {
  const server = await redisServer()
  assert.equal(await redisServer(), server)
  const { url, prefix } = prefixUrl(server)
  const other = freshPrefix()
  await withRedis(url, (redis) => redis.mset({ [`${prefix}:a`]: '1', [`${prefix}:b:c`]: '2', [`${other}:a`]: '3' }))
  assert.deepEqual(await keysOf(url, prefix), [`${prefix}:a`, `${prefix}:b:c`])
  await dropPrefix(url, prefix)
  assert.deepEqual(await keysOf(url, prefix), [])
  assert.deepEqual(await keysOf(url, other), [`${other}:a`])
  await dropPrefix(url, other)
})

for (const how of ['stop', 'kill'] as const)
  test(`after ${how} the port refuses, and a start on the same port has the data of the append-only file`, async () => {
    const server = await own({ aof: 'always' })
    await withRedis(server.url, (redis) => redis.set('kept', 'yes'))
    await server[how]()
    await assert.rejects(withRedis(server.url, (redis) => redis.get('kept')))
    await server.start()
    assert.equal(await withRedis(server.url, (redis) => redis.get('kept')), 'yes')
    await server[how]()
    await server.start('gone')
    assert.equal(await withRedis(server.url, (redis) => redis.get('kept')), null)
  })

test('memory and eviction are as told', async () => {
  const server = await own({ maxmemory: 5_000_000, eviction: 'allkeys-lru', settings: { 'maxmemory-samples': '7' } })
  const read = (name: string) => withRedis(server.url, (redis) => redis.config('GET', name))
  assert.deepEqual(await read('maxmemory'), ['maxmemory', '5000000'])
  assert.deepEqual(await read('maxmemory-policy'), ['maxmemory-policy', 'allkeys-lru'])
  assert.deepEqual(await read('maxmemory-samples'), ['maxmemory-samples', '7'])
})

test('a start that fails says why', async () => {
  const server = await own({})
  await assert.rejects(server.start(), /Address already in use/)
})
