/** What BullMQ's own programs, or a hand in redis-cli, do to our jobs leaves us consistent: nothing hangs, others go on. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob } from 'millrace'
import { z } from 'zod'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq, over } from './beside-bullmq.ts'

const by = { who: 'ann', reason: 'test' }
const signal = new AbortController().signal

describe('BullMQ’s own hands on our jobs', { timeout: 300_000 }, () => {
  test('retry puts a dead letter back, and it runs once more', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    let isDown = true
    const mail = defineJob({
      type: 'mail',
      attempts: 1,
      run: () => {
        if (isDown) throw new Error('no')
        return 'sent'
      },
    })
    await mill.work([mail])
    const { id } = await mill.enqueue(mail, {}, { key: 'k' })
    await over(mill, id)
    isDown = false
    await (await queue('mail').getJob(id))?.retry()
    await until(async () => (await mill.job(id))?.state === 'completed')
    const view = await mill.job(id)
    assert.deepEqual([view?.result, view?.error], ['sent', null])
    assert.deepEqual((await mill.counts()).mail, { ready: 0, delayed: 0, inProgress: 0, completed: 1, dead: 0 })
  })

  test('promote runs a delayed job now', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const mail = defineJob({ type: 'mail', run: () => 'sent' })
    await mill.work([mail])
    const { id } = await mill.enqueue(mail, {}, { delay: '1h' })
    await (await queue('mail').getJob(id))?.promote()
    assert.equal((await over(mill, id)).result, 'sent')
  })

  test('remove takes a waiting job, its key is free and a newer version of its latest key is stored', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const mail = defineJob({ type: 'mail' })
    const [keyed, version] = [
      await mill.enqueue(mail, 1, { key: 'k', delay: '1h' }),
      await mill.enqueue(mail, 1, { latest: 'l' }),
    ]
    const foreign = queue('mail')
    for (const { id } of [keyed, version]) await (await foreign.getJob(id))?.remove()
    assert.equal(await mill.job(keyed.id), null)
    assert.deepEqual(await mill.jobs(), [])
    assert.equal((await mill.enqueue(mail, 2, { key: 'k' })).status, 'enqueued')
    const newer = await mill.enqueue(mail, 2, { latest: 'l' })
    const again = await mill.enqueue(mail, 3, { latest: 'l' })
    await mill.work([mail.handledBy(() => 'ran')])
    assert.equal((await over(mill, again.id)).result, 'ran')
    assert.equal((await over(mill, newer.id)).state, 'superseded')
    assert.equal(await mill.job(version.id), null, 'no shadow of the removed one is left')
  })

  test('a version whose older one was removed while it ran is run', async (t) => {
    const { mill, redis, prefix } = await besideBullmq(t)
    const mail = defineJob({ type: 'mail' })
    const consumer = await mill.engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'w' })
    const older = await mill.enqueue(mail, 1, { latest: 'l' })
    assert.equal((await consumer.claim({ max: 1, waitMs: 0, signal })).length, 1)
    await redis.del(`${prefix}:mail:${older.id}`)
    const newer = await mill.enqueue(mail, 2, { latest: 'l' })
    await mill.work([mail.handledBy(() => 'ran')])
    assert.equal((await over(mill, newer.id)).result, 'ran')
  })

  test('drain, clean and obliterate leave nothing that we trip over', async (t) => {
    const { mill, queue, redis, prefix } = await besideBullmq(t)
    const foreign = queue('mail')
    const mail = defineJob({ type: 'mail', payload: z.number() })
    const after = defineJob({ type: 'after', run: () => 'ran' })
    const many = () => mill.enqueueMany(mail, [...Array(20).keys()])
    const [first] = await many()
    assert.ok(first)
    const follower = await mill.enqueue(after, {}, { after: [first] })
    await foreign.drain(true)
    assert.deepEqual(await mill.jobs({ type: 'mail' }), [])
    await many()
    const worker = await mill.work([mail.handledBy(({ payload }) => payload), after])
    await until(async () => (await mill.counts()).mail?.completed === 20)
    await foreign.clean(0, 100, 'completed')
    assert.equal((await mill.counts()).mail?.completed ?? 0, 0)
    await worker.stop()
    await many()
    await mill.enqueue(mail, 1, { key: 'k' })
    await foreign.obliterate({ force: true })
    assert.deepEqual(await mill.jobs({ type: 'mail' }), [])
    await mill.work([mail.handledBy(({ payload }) => payload), after])
    assert.equal(await mill.result(await mill.enqueue(mail, 7, { key: 'k' })), 7)
    const reaper = await mill.engine.consume({ types: 'every', worker: 'reaper' })
    await reaper.claim({ max: 10, waitMs: 0, from: 'expired', signal })
    assert.equal((await over(mill, follower.id)).error?.code, 'ERR_PREDECESSOR_DEAD', 'it does not wait for ever')
    assert.equal(await redis.llen(`${prefix}:mail:active`), 0)
  })

  test('one pass of the reaper lets go all whose predecessors were removed, beside thousands that wait for good reason', async (t) => {
    const { mill, queue, redis, prefix } = await besideBullmq(t)
    const first = defineJob({ type: 'first' })
    const next = defineJob({ type: 'next' })
    const gate = await mill.enqueue(first, {}, { delay: '10h' })
    await mill.enqueueMany(next, [...Array(3_000).keys()], { after: gate })
    const foreign = queue('first')
    for (let index = 0; index < 5; index += 1) {
      const removed = await mill.enqueue(first, index)
      await mill.enqueue(next, index, { after: removed })
      await (await foreign.getJob(removed.id))?.remove()
    }
    const reaper = await mill.engine.consume({ types: 'every', worker: 'reaper' })
    assert.deepEqual(await reaper.claim({ max: 10, waitMs: 0, from: 'expired', signal }), [])
    assert.deepEqual((await mill.counts()).next, { ready: 5, delayed: 3_000, inProgress: 0, completed: 0, dead: 0 })
    assert.equal(await redis.zcard(`${prefix}:next:waiting-children`), 3_000)
  })

  test('a hash deleted while it waits: nobody hangs, and the others run', async (t) => {
    const { mill, redis, prefix, queue } = await besideBullmq(t)
    const mail = defineJob({ type: 'mail', payload: z.number(), run: ({ payload }) => payload })
    const receipts = await mill.enqueueMany(mail, [1, 2, 3])
    const foreign = await queue('mail').add('x', 4)
    await redis.del(`${prefix}:mail:${receipts[1]?.id}`, `${prefix}:mail:${foreign.id}`)
    await mill.work([mail])
    for (const receipt of [receipts[0], receipts[2]]) assert.ok(receipt && (await mill.result(receipt.id)))
    await until(async () => (await redis.llen(`${prefix}:mail:active`)) === 0)
    assert.equal((await mill.jobs()).length, 2)
    assert.equal(await redis.exists(`${prefix}:mail:${receipts[1]?.id}`, `${prefix}:mail:${foreign.id}`), 0)
    assert.equal(await redis.zcard(`${prefix}::index`), 2)
  })

  test('a hash deleted while it runs: the result is refused, its place is cleared, and the others run', async (t) => {
    const { mill, redis, prefix } = await besideBullmq(t)
    const [started, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const lost: string[] = []
    mill.events.on('lease.lost', ({ job }) => lost.push(job.id))
    const mail = defineJob({
      type: 'mail',
      payload: z.number(),
      lease: '1s',
      run: async ({ payload }) => {
        if (payload === 1) {
          started.resolve()
          await held.promise
        }
        return payload
      },
    })
    const { id } = await mill.enqueue(mail, 1)
    await mill.work([mail])
    await started.promise
    await redis.del(`${prefix}:mail:${id}`)
    held.resolve()
    assert.equal(await mill.result(await mill.enqueue(mail, 2)), 2)
    await until(async () => lost.includes(id))
    await redis.del(`${prefix}:mail:${id}:lock`)
    const reaper = await mill.engine.consume({ types: 'every', worker: 'reaper' })
    assert.deepEqual(await reaper.claim({ max: 10, waitMs: 0, from: 'expired', signal }), [])
    assert.equal(await redis.llen(`${prefix}:mail:active`), 0)
    assert.equal(await mill.job(id), null)
    assert.equal(await mill.cancel(id, by), false)
  })
})
