/** Who holds a job, who is refused, and what a stall leaves: the fence that the Redis engine stands on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker } from 'bullmq'
import { claimed, codeOf, type PlainQueue, plainQueue, until } from './plain-queue.ts'

test('the lock is a key beside the job that holds the token, and lasts as long as told', async (t) => {
  const { queue, worker, redis, key } = await plainQueue(t)
  const { id } = await queue.add('a', {})
  await claimed(worker({ lockDuration: 600_000 }), 'mine')
  assert.equal(await redis.get(key(`${id}:lock`)), 'mine')
  const left = await redis.pttl(key(`${id}:lock`))
  assert.ok(left > 500_000 && left <= 600_000, `${left} ms`)
})

test('a stale token extends nothing: extendLock answers 0, extendJobLocks names the job', async (t) => {
  const { queue, worker, redis, key } = await plainQueue(t)
  const { id } = await queue.add('a', {})
  const claiming = worker()
  const job = await claimed(claiming, 'mine')
  assert.equal(await job.extendLock('mine', 9_000), 1)
  assert.equal(await job.extendLock('stale', 90_000), 0)
  assert.deepEqual(await claiming.extendJobLocks([String(id)], ['stale'], 90_000), [String(id)])
  assert.deepEqual(await claiming.extendJobLocks([String(id)], ['mine'], 9_000), [])
  assert.ok((await redis.pttl(key(`${id}:lock`))) <= 9_000)
})

test('completing with the token of another is -6, and the job stays with its holder', async (t) => {
  const { queue, worker, redis, key } = await plainQueue(t)
  const { id } = await queue.add('a', {})
  const job = await claimed(worker(), 'mine')
  await redis.set(key(`${id}:lock`), 'another')
  assert.equal(await codeOf(job.moveToCompleted('late', 'mine', false)), -6)
  assert.equal(await codeOf(job.moveToFailed(new Error('late'), 'mine', false)), -6)
  assert.deepEqual(await redis.lrange(key('active'), 0, -1), [id])
})

test('completing without a lock is -2', async (t) => {
  const { queue, worker, redis, key } = await plainQueue(t)
  const { id } = await queue.add('a', {})
  const job = await claimed(worker(), 'mine')
  await redis.del(key(`${id}:lock`))
  assert.equal(await codeOf(job.moveToCompleted('late', 'mine', false)), -2)
})

test('completing what is not active is -3, with the lock as it should be', async (t) => {
  const { queue, worker, redis, key } = await plainQueue(t)
  const { id } = await queue.add('a', {})
  const job = await claimed(worker(), 'mine')
  await redis.lrem(key('active'), 0, String(id))
  assert.equal(await codeOf(job.moveToCompleted('late', 'mine', false)), -3)
})

test('completing a job whose hash is gone is -1', async (t) => {
  const { queue, worker, redis, key } = await plainQueue(t)
  const { id } = await queue.add('a', {})
  const job = await claimed(worker(), 'mine')
  await redis.del(key(String(id)))
  assert.equal(await codeOf(job.moveToCompleted('late', 'mine', false)), -1)
})

test('completing twice is refused the second time', async (t) => {
  const { queue, worker } = await plainQueue(t)
  await queue.add('a', {})
  const job = await claimed(worker(), 'mine')
  await job.moveToCompleted('first', 'mine', false)
  assert.equal(await codeOf(job.moveToCompleted('second', 'mine', false)), -2)
})

test('recovery takes two looks: the first notes what is active, the second takes those without a lock', async (t) => {
  const plain = await plainQueue(t)
  const { queue, worker, redis, key, hash } = plain
  const { id } = await queue.add('a', {})
  const claiming = worker({ maxStalledCount: 100 })
  await claimed(claiming, 'mine')
  await redis.del(key(`${id}:lock`))
  await look(claiming, plain)
  assert.deepEqual(await redis.smembers(key('stalled')), [id])
  assert.deepEqual(await redis.lrange(key('active'), 0, -1), [id])
  await look(claiming, plain)
  assert.deepEqual(await redis.lrange(key('wait'), 0, -1), [id])
  assert.equal((await hash(String(id))).stc, '1')
})

test('a stall counts on the job: the attempt is attemptsMade + stalledCounter + 1', async (t) => {
  const plain = await plainQueue(t)
  const { queue, worker } = plain
  const { id } = await queue.add('a', {}, { attempts: 9 })
  const claiming = worker({ maxStalledCount: 100 })
  const first = await claimed(claiming, 'one')
  assert.equal(first.attemptsMade + first.stalledCounter + 1, 1)
  await first.moveToFailed(new Error('again'), 'one', false)
  const second = await claimed(claiming, 'two')
  assert.equal(second.attemptsMade + second.stalledCounter + 1, 2)
  await stall(claiming, plain, id)
  const third = await claimed(claiming, 'three')
  assert.equal(third.attemptsMade + third.stalledCounter + 1, 3)
  await third.moveToWait('three')
  const fourth = await claimed(claiming, 'four')
  assert.equal(fourth.attemptsMade + fourth.stalledCounter + 1, 3)
  assert.equal(fourth.attemptsStarted, 4)
})

test('with a low maxStalledCount a stalled job comes back with a failure that claiming by hand does not apply', async (t) => {
  const plain = await plainQueue(t)
  const { queue, worker, hash } = plain
  const { id } = await queue.add('a', {})
  const claiming = worker({ maxStalledCount: 0 })
  await claimed(claiming, 'one')
  await stall(claiming, plain, id)
  const again = await claimed(claiming, 'two')
  assert.match(String(again.deferredFailure), /stalled more than allowable limit/)
  assert.equal((await hash(String(id))).defa, again.deferredFailure)
  await again.moveToDelayed(Date.now() + 60_000, 'two')
  assert.ok((await hash(String(id))).defa, 'a delay leaves it')
  await again.promote()
  const once = await claimed(claiming, 'three')
  await once.moveToCompleted('well', 'three', false)
  assert.equal((await hash(String(id))).returnvalue, '"well"')
})

test('a blocking getNextJob cannot be aborted: closing waits for its whole timeout', async (t) => {
  const { worker, redis } = await plainQueue(t)
  const claiming = worker({ drainDelay: 3 })
  // It blocks only once it has seen that there is nothing.
  assert.equal(await claiming.getNextJob('mine', { block: false }), undefined)
  const began = performance.now()
  const next = claiming.getNextJob('mine', { block: true }).catch(() => undefined)
  await until(async () => /blocked_clients:1/.test(await redis.info('clients')))
  await claiming.close()
  await next
  assert.ok(performance.now() - began > 2_500, `${performance.now() - began} ms`)
})

/** One look for stalled jobs, as BullMQ's worker takes it once in each interval. */
async function look(worker: Worker, { redis, key }: PlainQueue): Promise<void> {
  await redis.del(key('stalled-check'))
  await worker.startStalledCheckTimer()
  await until(async () => (await redis.exists(key('stalled-check'))) === 1)
}

async function stall(worker: Worker, plain: PlainQueue, id: string | undefined): Promise<void> {
  await plain.redis.del(plain.key(`${id}:lock`))
  await look(worker, plain)
  await look(worker, plain)
}
