import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newJob, scene } from '../../../test/bullmq/scene.ts'

const by = { who: 'ann', reason: 'test' }
const never = new AbortController().signal

const types = [{ type: 'mail', leaseMs: 60_000 }]
const complete = { kind: 'complete', result: 'null', durationMs: 1 } as const

describe('a job in whose hash somebody wrote nonsense', { timeout: 300_000 }, () => {
  test('does not stop the batch that it is in', async (t) => {
    const { engine, queue, redis, prefix } = await scene(t)
    for (const n of [1, 2, 3]) await queue.add('welcome', { n })
    await redis.hset(`${prefix}:mail:2`, { atm: 'many', ats: 'x', stc: '-' })
    const consumer = await engine.consume({ types, worker: 'w' })
    const leases = await consumer.claim({ max: 10, waitMs: 0, signal: never })
    assert.deepEqual(
      leases.map(({ job, attempt }) => [job.id, attempt]),
      [
        ['mail#1', 1],
        ['mail#2', 1],
        ['mail#3', 1],
      ],
    )
    assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))), [])
    assert.equal((await engine.counts()).mail?.completed, 3)
  })

  test('is recovered from a dead holder', async (t) => {
    const { engine, queue, redis, prefix } = await scene(t)
    await queue.add('welcome', { n: 1 })
    const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 300 }], worker: 'w' })
    await consumer.claim({ max: 1, waitMs: 0, signal: never })
    await redis.hset(`${prefix}:mail:1`, { atm: '1e3' })
    const reaper = await engine.consume({ types: 'every', worker: 'r' })
    const [lease] = await reaper.claim({ from: 'expired', max: 1, waitMs: 60_000, signal: never })
    assert.ok(lease)
    const error = { name: 'Error', code: null, message: 'expired', stack: null }
    assert.deepEqual(await reaper.settle([{ lease, outcome: { kind: 'retry', delayMs: 0, error } }]), [])
    assert.equal((await engine.counts()).mail?.ready, 1)
  })
})

describe('jobs of a plain BullMQ producer', { timeout: 300_000 }, () => {
  test('are found, listed and counted beside ours, whatever their state', async (t) => {
    const { engine, inspector, queue } = await scene(t)
    await queue.add('welcome', { to: 'a' })
    await queue.add('welcome', { to: 'b' }, { delay: 60_000, attempts: 7 })
    await queue.add('welcome', { to: 'c' }, { priority: 3 })
    const [ours] = await engine.enqueue([newJob()])
    assert.deepEqual((await engine.counts()).mail, { ready: 3, delayed: 1, inProgress: 0, completed: 0, dead: 0 })
    const [view] = await inspector.find(['mail#2'])
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
    assert.deepEqual(await inspector.find(['other#1']), [null])
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
      [(await inspector.find(['mail#1']))[0]?.state, (await inspector.find(['mail#2']))[0]?.state, ran.length],
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

  test('that belong to a flow let their parent go when a worker of ours is done with them', async (t) => {
    const { engine, flows, inspector } = await scene(t)
    for (const kind of ['complete', 'dead'] as const) {
      const child = { name: 'child', queueName: 'mail', opts: { ignoreDependencyOnFailure: true } }
      const { job } = await flows.add({ name: 'parent', queueName: 'mail', children: [child] })
      const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'w' })
      const [lease] = await consumer.claim({ max: 1, waitMs: 10_000, signal: never })
      assert.ok(lease)
      const error = { name: 'Error', code: null, message: 'x', stack: null }
      const outcome = kind === 'complete' ? { kind, result: '1', durationMs: 1 } : { kind, error }
      assert.deepEqual(await consumer.settle([{ lease, outcome }]), [])
      const [parent] = await consumer.claim({ max: 1, waitMs: 10_000, signal: never })
      assert.equal(parent?.job.id, `mail#${job.id}`)
      assert.equal((await inspector.find([`mail#${job.id}`]))[0]?.state, 'in_progress')
      await consumer.close()
    }
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
    const note = { before: '', after: '', changed: [], unnamed: 0 }
    const edit = { payload: '"edited"', payloadVersion: 2, replaces: '{"to":"a"}', note }
    assert.deepEqual(await letters.requeue(['mail#1'], by, edit), [true])
    assert.deepEqual(await letters.discard(['mail#2'], by), [true])
    assert.deepEqual(await letters.remove(['mail#3', 'mail#1'], by), [true, false])
    const [view] = await inspector.find(['mail#1'])
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
    assert.equal((await inspector.find(['mail#1']))[0]?.result, 'sent')
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
    const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'w' })
    const [lease] = await consumer.claim({ max: 1, waitMs: 10_000, signal: never })
    assert.ok(lease)
    await consumer.settle([{ lease, outcome: { kind: 'complete', result: '1', durationMs: 1 } }])
    const swept = await engine.retention?.sweep([{ what: 'completed', beforeMs: Date.now() + 1_000 }], {
      from: null,
      max: 10,
    })
    assert.deepEqual(swept, { removed: 1, next: null })
    assert.deepEqual(await inspector.find(['mail#1']), [null])
    assert.equal(await redis.zcard(`${prefix}::index`), 0)
  })
})
