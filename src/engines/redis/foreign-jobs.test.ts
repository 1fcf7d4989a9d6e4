import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { FlowProducer, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { dropPrefix, prefixUrl, redisServer } from '../../../test/servers/redis.ts'
import type { DeadLetters, Engine, Inspector } from '../../engine/engine.ts'
import { newJobId } from '../../job/id.ts'
import type { NewJob } from '../../job/job.ts'
import { systemClock } from '../../time/clock.ts'
import { fromUrl } from './module.ts'

const by = { who: 'ann', reason: 'test' }
const never = new AbortController().signal

interface Scene {
  readonly engine: Engine
  readonly inspector: Inspector
  readonly letters: DeadLetters
  readonly queue: Queue
  readonly flows: FlowProducer
  readonly redis: Redis
  readonly prefix: string
  /** Runs what is there with a worker of BullMQ's own until it has finished so many. */
  work(count: number, run: () => Promise<unknown>): Promise<void>
}

async function scene(t: TestContext): Promise<Scene> {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port) }
  const engine = fromUrl(url, { clock: systemClock, migrate: true })
  await engine.open()
  const queue = new Queue('mail', { connection, prefix })
  const flows = new FlowProducer({ connection, prefix })
  const redis = new Redis(server.url)
  t.after(async () => {
    await queue.close()
    await flows.close()
    await engine.close()
    redis.disconnect()
    await dropPrefix(server.url, prefix)
  })
  // Millrace has met the type.
  await redis.sadd(`${prefix}::types`, 'mail')
  const { inspector, deadLetters: letters } = engine
  assert.ok(inspector && letters)
  const work = async (count: number, run: () => Promise<unknown>): Promise<void> => {
    const worker = new Worker('mail', run, { connection, prefix })
    const done = Promise.withResolvers<void>()
    let left = count
    const step = (): void => {
      left -= 1
      if (left === 0) done.resolve()
    }
    worker.on('completed', step)
    worker.on('failed', step)
    await done.promise
    await worker.close()
  }
  return { engine, inspector, letters, queue, flows, redis, prefix, work }
}

function newJob(fields: Partial<NewJob> = {}): NewJob {
  return {
    id: newJobId(Date.now()),
    type: 'mail',
    payload: '1',
    payloadVersion: 1,
    priority: 5,
    attempts: 3,
    delayMs: 0,
    runAtMs: null,
    key: null,
    latest: null,
    tenant: null,
    options: null,
    after: null,
    ...fields,
  }
}

describe('jobs of a plain BullMQ producer', { timeout: 60_000 }, () => {
  test('are found, listed and counted beside ours, whatever their state', async (t) => {
    const { engine, inspector, queue } = await scene(t)
    await queue.add('welcome', { to: 'a' })
    await queue.add('welcome', { to: 'b' }, { delay: 60_000, attempts: 7 })
    await queue.add('welcome', { to: 'c' }, { priority: 3 })
    const [ours] = await engine.enqueue([newJob()])
    assert.deepEqual((await engine.counts()).mail, { ready: 3, delayed: 1, inProgress: 0, completed: 0, dead: 0 })
    const view = await inspector.find('mail#2')
    assert.deepEqual([view?.payload, view?.attempts, view?.state], ['{"to":"b"}', 7, 'queued'])
    const listed = (await inspector.list({ limit: 10 })).map(({ id }) => id)
    assert.deepEqual(listed, ['mail#3', 'mail#2', 'mail#1', ours?.id])
    const second = await inspector.list({ limit: 2, before: 'mail#2', state: 'queued', type: 'mail' })
    assert.deepEqual(
      second.map(({ id }) => id),
      ['mail#1', ours?.id],
    )
    assert.equal((await inspector.oldestDue())?.id, 'mail#1')
    // The number is that of a job in another queue.
    assert.equal(await inspector.find('other#1'), null)
  })

  test('are cancelled like ours, and BullMQ’s workers do not get them', async (t) => {
    const { engine, inspector, queue, work } = await scene(t)
    await queue.add('welcome', { to: 'a' })
    await queue.add('welcome', { to: 'b' })
    assert.equal(await engine.controls?.cancel('mail#1', by), true)
    assert.equal(await engine.controls?.cancel('mail#1', by), false)
    const ran: unknown[] = []
    await work(1, async () => ran.push(1))
    assert.deepEqual(
      [(await inspector.find('mail#1'))?.ended, (await inspector.find('mail#2'))?.state, ran.length],
      ['cancelled', 'completed', 1],
    )
    assert.equal((await inspector.history('mail#1')).at(-1)?.name, 'cancelled')
  })

  test('that others of BullMQ wait for, or that hold back their like, do so no more once they are cancelled', async (t) => {
    const { engine, inspector, queue, flows } = await scene(t)
    const children = [{ name: 'child', queueName: 'mail', opts: { jobId: 'child' } }]
    await flows.add({ name: 'parent', queueName: 'mail', opts: { jobId: 'parent' }, children })
    await queue.add('once', {}, { deduplication: { id: 'd' } })
    assert.equal((await engine.counts()).mail?.delayed, 1)
    assert.equal(await engine.controls?.cancel('mail#child', by), true)
    assert.equal((await engine.counts()).mail?.delayed, 0)
    const [first] = await inspector.list({ limit: 9, state: 'queued' })
    assert.equal(first?.id, 'mail#parent')
    const held = await queue.add('once', {}, { deduplication: { id: 'd' } })
    assert.equal(await engine.controls?.cancel(`mail#${held.id}`, by), true)
    const next = await queue.add('once', {}, { deduplication: { id: 'd' } })
    assert.notEqual(next.id, held.id)
  })

  test('that a worker of BullMQ’s own finished, or somebody deleted, hold no key of ours any more', async (t) => {
    const { engine, redis, prefix, work } = await scene(t)
    const keyed = async () => (await engine.enqueue([newJob({ key: 'k' })]))[0]
    const first = await keyed()
    assert.deepEqual(await keyed(), { id: first?.id, status: 'duplicate' })
    await work(1, async () => 1)
    const second = await keyed()
    assert.equal(second?.status, 'enqueued')
    await redis.del(`${prefix}:mail:${second?.id}`)
    assert.equal((await keyed())?.status, 'enqueued')
  })

  test('that died in a worker of BullMQ’s own are dead letters: replayed, discarded, removed, all in the audit', async (t) => {
    const { engine, inspector, letters, queue, work } = await scene(t)
    for (const to of ['a', 'b', 'c']) await queue.add('welcome', { to })
    await work(3, () => Promise.reject(new Error('no route')))
    const found = await letters.list({ limit: 10 })
    assert.deepEqual(found.map(({ job }) => job.id).sort(), ['mail#1', 'mail#2', 'mail#3'])
    assert.equal(found[0]?.error.message, 'no route')
    assert.equal(await letters.requeue('mail#1', by, { payload: '"edited"', payloadVersion: 2 }), true)
    assert.equal(await letters.discard('mail#2', by), true)
    assert.equal(await letters.remove(['mail#3', 'mail#1'], by), 1)
    const view = await inspector.find('mail#1')
    assert.deepEqual([view?.payload, view?.payloadVersion, view?.attempt, view?.replays], ['"edited"', 2, 0, 1])
    assert.deepEqual((await engine.counts()).mail, { ready: 1, delayed: 0, inProgress: 0, completed: 0, dead: 0 })
    assert.deepEqual(
      (await letters.audit({ limit: 10 })).map(({ action, jobId, type }) => [action, jobId, type]),
      [
        ['purge', 'mail#3', 'mail'],
        ['discard', 'mail#2', 'mail'],
        ['replay', 'mail#1', 'mail'],
      ],
    )
    await work(1, async () => 'sent')
    assert.equal((await inspector.find('mail#1'))?.result, 'sent')
  })

  test('who waits for one hears when a worker of BullMQ’s own completes it', async (t) => {
    const { inspector, queue, work } = await scene(t)
    await queue.add('welcome', { to: 'a' })
    const waiting = inspector.waitFor('mail#1', { waitMs: 30_000, signal: never })
    await work(1, async () => ({ sent: true }))
    assert.deepEqual((await waiting)?.result, { sent: true })
  })

  test('once a worker of ours has run them, retention removes them and all of ours about them', async (t) => {
    const { engine, inspector, queue, redis, prefix } = await scene(t)
    await queue.add('welcome', { to: 'a' })
    const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 10_000 }], worker: 'w' })
    const [lease] = await consumer.claim({ max: 1, waitMs: 1_000, signal: never })
    assert.ok(lease)
    await consumer.settle([{ lease, outcome: { kind: 'complete', result: '1', durationMs: 1 } }])
    const swept = await engine.retention?.sweep([{ what: 'completed', beforeMs: Date.now() + 1_000 }], {
      from: null,
      max: 10,
    })
    assert.deepEqual(swept, { removed: 1, next: null })
    assert.equal(await inspector.find('mail#1'), null)
    assert.equal(await redis.zcard(`${prefix}::index`), 0)
  })
})

describe('looking at many jobs', { timeout: 60_000 }, () => {
  test('more than are gathered at once are paged through the index, by state and past what is gone', async (t) => {
    const { engine, inspector, redis, prefix } = await scene(t)
    const jobs = Array.from({ length: 1_300 }, (_, index) => newJob({ type: index % 2 === 0 ? 'mail' : 'other' }))
    await engine.enqueue(jobs)
    const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 10_000 }], worker: 'w' })
    const [lease] = await consumer.claim({ max: 1, waitMs: 1_000, signal: never })
    assert.ok(lease)
    const ids = jobs
      .map(({ id }) => id)
      .sort()
      .reverse()
    const [deleted = ''] = ids
    await redis.del(`${prefix}:mail:${deleted}`, `${prefix}:other:${deleted}`)
    const listed: string[] = []
    for (;;) {
      const before = listed.at(-1)
      const page = await inspector.list({ limit: 400, ...(before !== undefined && { before }) })
      listed.push(...page.map(({ id }) => id))
      if (page.length < 400) break
    }
    assert.deepEqual(listed, ids.slice(1))
    assert.equal(await redis.zcard(`${prefix}::index`), 1_299, 'what is gone leaves the index')
    const running = await inspector.list({ limit: 5, state: 'in_progress' })
    assert.deepEqual(
      running.map(({ id }) => id),
      [lease.job.id],
    )
    const others = await inspector.list({ limit: 1_000, type: 'other', state: 'queued' })
    const expected = jobs.filter(({ type, id }) => type === 'other' && id !== deleted).length
    assert.equal(others.length, expected)
  })

  test('dead letters that died at one moment are paged without a gap, ours and others', async (t) => {
    const { engine, letters, redis, prefix } = await scene(t)
    const ids = Array.from({ length: 23 }, (_, index) => (index % 3 === 0 ? newJobId(Date.now()) : `00${index}`))
    for (const id of ids) {
      await redis.hset(`${prefix}:mail:${id}`, { name: 'mail', data: '1', finishedOn: 1_000, failedReason: 'x' })
      await redis.zadd(`${prefix}:mail:failed`, 1_000, id)
    }
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await redis.hset(`${prefix}:mail:${id}`, {
        name: 'mail',
        data: '1',
        finishedOn: 900 - id.charCodeAt(0),
        failedReason: 'x',
      })
      await redis.zadd(`${prefix}:mail:failed`, 900 - id.charCodeAt(0), id)
    }
    // Somebody deleted the hash of one.
    await redis.zadd(`${prefix}:mail:failed`, 1_000, 'gone')
    const seen: string[] = []
    let after: { readonly completedAtMs: number; readonly id: string } | undefined
    for (;;) {
      const page = await letters.list({ limit: 4, ...(after && { after }) })
      seen.push(...page.map(({ job }) => job.id))
      const last = page.at(-1)?.job
      if (last === undefined || page.length < 4) break
      after = { completedAtMs: last.completedAtMs ?? 0, id: last.id }
    }
    assert.equal(new Set(seen).size, 28)
    assert.equal(seen.length, 28)
    assert.ok(engine.retention)
    assert.ok((await engine.retention.usedBytes()) > 28 * 50)
  })

  test('a job whose fields are nonsense can be looked at, cancelled and removed', async (t) => {
    const { engine, inspector, letters, redis, prefix } = await scene(t)
    for (const [id, set] of [
      ['1', 'wait'],
      ['2', 'failed'],
    ] as const) {
      const fields = { name: 'mail', data: 'not json', opts: '{', mr: '[', timestamp: 'x', priority: 'y', atm: 'z' }
      await redis.hset(`${prefix}:mail:${id}`, fields)
      if (set === 'wait') await redis.lpush(`${prefix}:mail:wait`, id)
      else await redis.zadd(`${prefix}:mail:failed`, 5, id)
    }
    assert.deepEqual(
      (await inspector.list({ limit: 10 })).map(({ id }) => id),
      ['mail#2', 'mail#1'],
    )
    assert.equal(await engine.controls?.cancel('mail#1', by), true)
    assert.equal(await letters.remove(['mail#2'], by), 1)
    assert.equal((await letters.audit({ limit: 1 }))[0]?.jobId, 'mail#2')
  })
})
