import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { dropPrefix, prefixUrl, redisServer } from '../../../test/servers/redis.ts'
import { systemClock } from '../../time/clock.ts'
import { RedisDatabase } from './database.ts'
import { storeJobs } from './enqueue.ts'
import { enqueueOneArgs, enqueueOneScript } from './enqueue-one.ts'
import { enqueueArgs, enqueuePlainScript } from './enqueue-plain.ts'
import { parseUrl } from './options.ts'

async function stage(t: TestContext) {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const { address, options } = parseUrl(url)
  const database = new RedisDatabase({ source: { address }, clock: systemClock, options })
  await database.reach()
  const redis = new Redis(server.url)
  t.after(async () => {
    database.close()
    redis.disconnect()
    await dropPrefix(server.url, prefix)
  })
  const one = (job = newJob()) => database.run(enqueueOneScript(), enqueueOneArgs(job))
  return { database, redis, one, queue: `${prefix}:greet`, prefix }
}

test('one job is stored as the script of batches stores it', async (t) => {
  const { database, redis, one, queue, prefix } = await stage(t)
  const extra = { priority: 7, attempts: 2, tenant: { orgId: 'o' }, options: { name: 'hello' } }
  const [first, ...jobs] = [newJob(), newJob(extra), newJob(), newJob(extra), newJob()]
  await storeJobs(database, [first])
  const [inBatch, plain, alone, simple] = jobs
  assert.ok(inBatch && plain && alone && simple)
  await database.run(enqueuePlainScript(), enqueueArgs([inBatch, plain]))
  assert.equal(await one(alone), 1)
  assert.equal(await one(simple), 1)

  const hashOf = async (id: string) => {
    const { timestamp, opts, ...fields } = await redis.hgetall(`${queue}:${id}`)
    assert.ok(Math.abs(Number(timestamp) - Date.now()) < 60_000)
    return { ...fields, opts: JSON.parse(opts ?? '') }
  }
  assert.deepEqual(await hashOf(alone.id), await hashOf(inBatch.id))
  assert.deepEqual(await hashOf(simple.id), await hashOf(plain.id))
  const waiting = [first, plain, simple, inBatch, alone].map(({ id }) => id)
  assert.deepEqual(await redis.zrange(`${queue}:prioritized`, '0', '-1'), waiting)
  const scoreOf = async (id: string) => Number(await redis.zscore(`${queue}:prioritized`, id))
  assert.equal((await scoreOf(simple.id)) - 5 * 2 ** 32, 5)
  assert.equal(await redis.get(`${queue}:pc`), '5')
  assert.equal((await redis.zrange(`${prefix}::index`, '0', '-1')).length, 5)
  const events = (await redis.xrange(`${queue}:events`, '-', '+')).map(([, fields]) => fields)
  const eventsOf = (id: string) => events.filter((fields) => fields.includes(id)).map((fields) => fields.join(' '))
  assert.deepEqual(eventsOf(alone.id), [`event added jobId ${alone.id} name hello`, `event waiting jobId ${alone.id}`])
})

test('it does nothing for a new type, a known id or while a delayed job is due', async (t) => {
  const { database, redis, one, queue } = await stage(t)
  assert.equal(await one(), null)
  assert.deepEqual(await redis.keys(`${queue}*`), [])
  const [stored, early, delayed] = [newJob(), newJob(), newJob({ delayMs: 60_000 })]
  await storeJobs(database, [stored])
  assert.equal(await one(stored), null)
  await storeJobs(database, [newJob({ type: 'other' })])
  assert.equal(await one(newJob({ id: stored.id, type: 'other' })), null)
  assert.deepEqual(await storeJobs(database, [newJob({ id: stored.id, type: 'other' })]), [
    { id: stored.id, status: 'duplicate' },
  ])

  await storeJobs(database, [delayed])
  assert.equal(await one(early), 1)
  await redis.zadd(`${queue}:delayed`, 1, delayed.id)
  assert.equal(await one(), null)
  const late = newJob()
  assert.deepEqual(await storeJobs(database, [late]), [{ id: late.id, status: 'enqueued' }])
  const ids = [stored, early, delayed, late].map(({ id }) => id)
  assert.deepEqual(await redis.zrange(`${queue}:prioritized`, '0', '-1'), ids)
})

test('the stream of events does not grow without end where nobody takes the jobs', async (t) => {
  const { database, redis, one, queue } = await stage(t)
  await storeJobs(database, [newJob()])
  await redis.hset(`${queue}:meta`, 'opts.maxLenEvents', '10')
  for (let jobs = 0; jobs < 300; jobs += 1) assert.notEqual(await one(newJob()), null)
  // Redis drops blocks of a hundred entries.
  assert.ok((await redis.xlen(`${queue}:events`)) <= 10 + 100 + 2 * 16)
  await redis.hdel(`${queue}:meta`, 'opts.maxLenEvents')
  for (let jobs = 0; jobs < 16; jobs += 1) assert.notEqual(await one(newJob()), null)
  assert.equal(await redis.hget(`${queue}:meta`, 'opts.maxLenEvents'), '10000', 'as BullMQ sets it')
})
