import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { newJob, scene } from '../../../test/bullmq/scene.ts'
import { prefixUrl, redisServer } from '../../../test/servers/redis.ts'
import { systemClock } from '../../time/clock.ts'
import { RedisDatabase } from './database.ts'
import { claimPlainScript } from './lua/claim-plain.ts'
import { parseUrl } from './options.ts'
import { listOf } from './rows.ts'

const LEASE_MS = 60_000

async function stage(t: TestContext) {
  const { engine, queue, redis, prefix } = await scene(t)
  const { address, options } = parseUrl(prefixUrl(await redisServer(), prefix).url)
  const database = new RedisDatabase({ source: { address }, clock: systemClock, options })
  await database.reach()
  t.after(() => database.close())
  /** When to look again, and the ids that it took; null where it did nothing. */
  const claim = async (max: number) => {
    const answer = await database.run(claimPlainScript(), ['w', 'token.', max, 'mail', LEASE_MS])
    if (answer === null) return null
    const [lookInMs, jobs] = listOf(answer)
    return { lookInMs: Number(lookInMs), ids: listOf(jobs).filter((_, index) => index % 3 === 1) }
  }
  return { engine, queue, redis, claim, key: (name: string) => `${prefix}:mail:${name}` }
}

test('a plain claim takes BullMQ’s list first, then by priority, and its locks end with the lease', async (t) => {
  const { engine, queue, redis, claim, key } = await stage(t)
  const [late, early] = [newJob({ priority: 7 }), newJob({ priority: 3 })]
  await engine.enqueue([late, early])
  const listed = [await queue.add('a', {}), await queue.add('b', {})].map(({ id }) => id)
  assert.deepEqual(await claim(3), { lookInMs: -1, ids: [...listed, early.id] })
  assert.deepEqual(await redis.zrange(key('marker'), '0', '-1'), ['0'])
  assert.deepEqual(await claim(3), { lookInMs: -1, ids: [late.id] })
  assert.deepEqual(await redis.zrange(key('marker'), '0', '-1'), [])
  assert.deepEqual(await redis.lrange(key('active'), 0, -1), [late.id, early.id, ...listed.toReversed()])
  assert.equal(await redis.get(key(`${late.id}:lock`)), 'token.1')
  const leftMs = await redis.pttl(key(`${late.id}:lock`))
  assert.ok(leftMs > LEASE_MS - 10_000 && leftMs <= LEASE_MS + 1_000, `${leftMs} ms`)
})

test('a plain claim promotes what is due, and tells when the next delayed job is', async (t) => {
  const { engine, redis, claim, key } = await stage(t)
  const [due, later] = [newJob({ delayMs: 60_000 }), newJob({ delayMs: 30_000 })]
  await engine.enqueue([due, later])
  await redis.zadd(key('delayed'), 1, due.id)
  const answer = await claim(5)
  assert.deepEqual(answer?.ids, [due.id])
  assert.ok(answer.lookInMs > 20_000 && answer.lookInMs <= 30_000, `${answer.lookInMs} ms`)
  // Of those who wait, one must find out when to look.
  assert.ok((await redis.zrange(key('marker'), '0', '-1')).includes('0'))
})

test('it does nothing where BullMQ pauses or limits the queue', async (t) => {
  const { engine, redis, claim, key } = await stage(t)
  const job = newJob()
  await engine.enqueue([job])
  for (const limit of ['paused', 'concurrency', 'max']) {
    await redis.hset(key('meta'), limit, '1')
    assert.equal(await claim(5), null, limit)
    assert.deepEqual(await redis.zrange(key('prioritized'), '0', '-1'), [job.id])
    await redis.hdel(key('meta'), limit)
  }
  assert.deepEqual((await claim(5))?.ids, [job.id])
})
