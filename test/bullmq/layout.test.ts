/** Where BullMQ keeps what: keys, fields of a job's hash, scores, the marker and the events. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimed, plainQueue, until } from './plain-queue.ts'

test('a waiting job is a hash with its name, data, opts, timestamp, delay and priority', async (t) => {
  const { queue, hash } = await plainQueue(t)
  const job = await queue.add('mail', { to: 'x' }, { attempts: 4 })
  assert.deepEqual(await hash(job), {
    name: 'mail',
    data: '{"to":"x"}',
    opts: '{"attempts":4}',
    timestamp: String(job.timestamp),
    delay: '0',
    priority: '0',
  })
})

test('a claim adds processedOn, pb and ats; progress and completion their own fields', async (t) => {
  const { queue, worker, hash } = await plainQueue(t)
  const added = await queue.add('mail', {}, { deduplication: { id: 'once' } })
  const claiming = worker({ name: 'kitchen' })
  const job = await claimed(claiming, 'mine')
  const running = await hash(added)
  assert.ok(Math.abs(Number(running.processedOn) - Date.now()) < 60_000)
  assert.deepEqual([running.pb, running.ats, running.atm, running.deid], ['kitchen', '1', undefined, 'once'])
  await job.updateProgress({ step: 2 })
  assert.equal((await hash(added)).progress, '{"step":2}')
  await job.moveToCompleted({ sent: true }, 'mine', false)
  const finished = await hash(added)
  assert.deepEqual([finished.returnvalue, finished.atm], ['{"sent":true}', '1'])
  assert.ok(Number(finished.finishedOn) >= Number(finished.processedOn))
})

test('a failure leaves failedReason, the list of stacks and atm', async (t) => {
  const { queue, worker, hash } = await plainQueue(t)
  const added = await queue.add('mail', {})
  const job = await claimed(worker(), 'mine')
  await job.moveToFailed(new Error('no such box'), 'mine', false)
  const failed = await hash(added)
  assert.deepEqual([failed.failedReason, failed.atm], ['no such box', '1'])
  const stacks: unknown = JSON.parse(failed.stacktrace ?? '')
  assert.ok(Array.isArray(stacks) && stacks.length === 1 && String(stacks[0]).startsWith('Error: no such box'))
})

test('opts keep what BullMQ does not know, and data its very text', async (t) => {
  const { queue, hash } = await plainQueue(t)
  const options = { attempts: 2, ours: { version: 3, options: ['a'] } }
  const job = await queue.add('mail', { text: 'ä \u2028 "', n: 1.5 }, options)
  assert.deepEqual(JSON.parse((await hash(job)).opts ?? ''), options)
  assert.equal((await hash(job)).data, JSON.stringify({ text: 'ä \u2028 "', n: 1.5 }))
  const read = await queue.getJob(String(job.id))
  assert.deepEqual(
    Object.entries(read?.opts ?? {}).filter(([name]) => name === 'ours'),
    [['ours', options.ours]],
  )
})

test('fields of others in a hash survive its whole life', async (t) => {
  const { queue, worker, hash, redis, key } = await plainQueue(t)
  const added = await queue.add('mail', {}, { attempts: 2 })
  await redis.hset(key(String(added.id)), 'mr', 'ours')
  const claiming = worker()
  await (await claimed(claiming, 'one')).moveToFailed(new Error('again'), 'one', false)
  await (await claimed(claiming, 'two')).moveToCompleted('well', 'two', false)
  assert.equal((await hash(added)).mr, 'ours')
})

test('each state has its key and its kind', async (t) => {
  const { queue, worker, redis, key } = await plainQueue(t)
  const claiming = worker()
  const settle = async (name: string): Promise<void> => {
    await queue.add(name, {})
    const job = await claimed(claiming, name)
    if (name === 'completed') await job.moveToCompleted(1, name, false)
    if (name === 'failed') await job.moveToFailed(new Error('x'), name, false)
  }
  for (const name of ['completed', 'failed', 'active']) await settle(name)
  await queue.add('wait', {})
  await queue.add('prioritized', {}, { priority: 2 })
  await queue.add('delayed', {}, { delay: 60_000 })
  const kinds = {
    wait: 'list',
    active: 'list',
    prioritized: 'zset',
    delayed: 'zset',
    completed: 'zset',
    failed: 'zset',
    marker: 'zset',
    events: 'stream',
    meta: 'hash',
    id: 'string',
    pc: 'string',
  }
  for (const [name, kind] of Object.entries(kinds)) assert.equal(await redis.type(key(name)), kind, name)
  assert.equal(await redis.get(key('id')), '6')
})

test('a job that waits for children is in the sorted set waiting-children', async (t) => {
  const { queue, redis, key, worker } = await plainQueue(t)
  const parent = await queue.add('parent', {})
  const job = await claimed(worker(), 'mine')
  await redis.sadd(key(`${parent.id}:dependencies`), key('child'))
  assert.equal(await job.moveToWaitingChildren('mine'), true)
  assert.equal(await redis.type(key('waiting-children')), 'zset')
  assert.ok(await redis.zscore(key('waiting-children'), String(parent.id)))
})

test('a paused queue keeps its jobs in wait, is marked in meta, and hands nothing out', async (t) => {
  const { queue, redis, key, worker } = await plainQueue(t)
  await queue.pause()
  const job = await queue.add('a', {})
  assert.equal(await redis.hget(key('meta'), 'paused'), '1')
  assert.deepEqual(await redis.lrange(key('wait'), 0, -1), [job.id])
  assert.equal(await redis.exists(key('paused')), 0)
  assert.equal(await worker().getNextJob('mine', { block: false }), undefined)
})

test('the score of a priority is priority · 2^32 + a counter; 0 goes to wait, before all of them', async (t) => {
  const { queue, redis, key, worker } = await plainQueue(t)
  const second = await queue.add('second', {}, { priority: 2 })
  const first = await queue.add('first', {}, { priority: 1 })
  const later = await queue.add('later', {}, { priority: 2 })
  const plain = await queue.add('plain', {})
  const scores = await redis.zrange(key('prioritized'), '0', '-1', 'WITHSCORES')
  const at = (priority: number, count: number): string => String(priority * 2 ** 32 + count)
  assert.deepEqual(scores, [first.id, at(1, 2), second.id, at(2, 1), later.id, at(2, 3)])
  assert.deepEqual(await redis.lrange(key('wait'), 0, -1), [plain.id])
  const claiming = worker()
  const order: (string | undefined)[] = []
  for (const token of ['a', 'b', 'c', 'd']) order.push((await claimed(claiming, token)).id)
  assert.deepEqual(order, [plain.id, first.id, second.id, later.id])
})

test('the score of a delay is its due time in ms · 4096 + n', async (t) => {
  const { queue, redis, key, worker } = await plainQueue(t)
  const due = Date.now() + 60_000
  const jobs = [
    await queue.add('a', {}, { timestamp: due - 1_000, delay: 1_000 }),
    await queue.add('b', {}, { timestamp: due - 2_000, delay: 2_000 }),
  ]
  assert.deepEqual(await redis.zrange(key('delayed'), '0', '-1', 'WITHSCORES'), [
    jobs[0]?.id,
    String(due * 4_096),
    jobs[1]?.id,
    String(due * 4_096 + 1),
  ])
  assert.equal(await worker().getNextJob('mine', { block: false }), undefined)
})

test('the marker: member 0 of score 0 when there is work, member 1 with the next due time', async (t) => {
  const { queue, redis, key } = await plainQueue(t)
  const due = Date.now() + 60_000
  await queue.add('later', {}, { timestamp: due - 500, delay: 500 })
  assert.deepEqual(await redis.bzpopmin(key('marker'), 1), [key('marker'), '1', String(due)])
  await queue.add('now', {})
  await queue.add('too', {}, { priority: 1 })
  assert.deepEqual(await redis.zrange(key('marker'), '0', '-1', 'WITHSCORES'), ['0', '0'])
  assert.deepEqual(await redis.bzpopmin(key('marker'), 1), [key('marker'), '0', '0'])
})

test('a claim puts the marker back, so that other waiting workers wake', async (t) => {
  const { queue, redis, key, worker } = await plainQueue(t)
  await queue.addBulk([
    { name: 'a', data: {} },
    { name: 'b', data: {} },
  ])
  await redis.del(key('marker'))
  await claimed(worker(), 'mine')
  assert.deepEqual(await redis.zrange(key('marker'), '0', '-1', 'WITHSCORES'), ['0', '0'])
})

test('the stream of events is trimmed to about as many as meta says (default: 10,000)', async (t) => {
  const { queue, redis, key } = await plainQueue(t)
  await queue.add('a', {})
  assert.equal(await redis.hget(key('meta'), 'opts.maxLenEvents'), '10000')
  await redis.hset(key('meta'), 'opts.maxLenEvents', '100')
  await queue.addBulk(Array.from({ length: 1_000 }, () => ({ name: 'a', data: {} })))
  const length = await redis.xlen(key('events'))
  assert.ok(length >= 100 && length < 400, `${length} events`)
})

test('a deduplication id is a key that holds the job from its enqueue to its end', async (t) => {
  const { queue, redis, key, worker } = await plainQueue(t)
  const options = { deduplication: { id: 'once' } }
  const first = await queue.add('a', { n: 1 }, options)
  const second = await queue.add('a', { n: 2 }, options)
  assert.equal(second.id, first.id)
  assert.equal(await redis.get(key('de:once')), first.id)
  assert.equal(await redis.pttl(key('de:once')), -1)
  const job = await claimed(worker(), 'mine')
  assert.equal(await redis.get(key('de:once')), first.id)
  await job.moveToCompleted(null, 'mine', false)
  assert.equal(await redis.exists(key('de:once')), 0)
  assert.notEqual((await queue.add('a', { n: 3 }, options)).id, first.id)
})

test('a job id that is there already stores nothing', async (t) => {
  const { queue, hash, redis, key } = await plainQueue(t)
  await queue.add('a', { n: 1 }, { jobId: 'mine' })
  await queue.add('a', { n: 2 }, { jobId: 'mine' })
  assert.equal((await hash('mine')).data, '{"n":1}')
  assert.equal(await redis.llen(key('wait')), 1)
})

test('addBulk is many commands and not one step: others see a part of it', async (t) => {
  const { queue, redis, key } = await plainQueue(t)
  await queue.waitUntilReady()
  const before = await callsOf(redis)
  await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'a', data: {} })))
  assert.equal((await callsOf(redis)).exec - before.exec, 0)
  assert.ok((await callsOf(redis)).scripts - before.scripts >= 20)
  // One of them fails, and the others are stored all the same.
  await redis.del(key('wait'))
  const bad = { name: 'b', data: {}, opts: { parent: { id: 'gone', queue: key('').slice(0, -1) } } }
  await queue.addBulk([{ name: 'a', data: {} }, bad, { name: 'c', data: {} }]).catch(() => {})
  await until(async () => (await redis.llen(key('wait'))) === 2)
})

async function callsOf(redis: { info(section: string): Promise<string> }): Promise<{ exec: number; scripts: number }> {
  const text = await redis.info('commandstats')
  const calls = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(text)?.[1] ?? 0)
  return { exec: calls('exec'), scripts: calls('eval') + calls('evalsha') }
}
