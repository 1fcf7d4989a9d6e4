import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob } from 'millrace'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq } from './beside-bullmq.ts'

const mail = defineJob({ type: 'mail', run: () => 'sent' })

describe('operating beside BullMQ', () => {
  test('our pause is not BullMQ’s, and BullMQ’s is left as it is', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const theirs = queue('mail')
    await mill.enqueue(mail, null)
    await mill.pause('mail')
    assert.equal(await theirs.isPaused(), false)
    await theirs.pause()
    await mill.resume('mail')
    assert.equal(await theirs.isPaused(), true)
    await theirs.resume()
    assert.deepEqual(await mill.paused(), [])
  })

  test('a type that we have paused is still worked on by BullMQ’s own workers', async (t) => {
    const { mill, queue, worker } = await besideBullmq(t)
    await mill.pause('mail')
    await mill.work([mail])
    const ran = Promise.withResolvers<unknown>()
    await queue('mail').add('mail', { n: 1 })
    worker('mail', async (data) => ran.resolve(data))
    assert.deepEqual(await ran.promise, { n: 1 })
  })

  // D02 D03
  test('a worker’s beat stands under the engine’s prefix, in the format of the escrow workers', async (t) => {
    const { mill, redis, prefix } = await besideBullmq(t)
    await mill.work([mail], { id: 'w1', concurrency: 3 })
    // A worker does not wait longer than a second for its first beat.
    await until(async () => (await redis.exists(`${prefix}::worker:mail:w1`)) === 1)
    const text = await redis.get(`${prefix}::worker:mail:w1`)
    const { timestamp, status, last_message_at, consumer_lag, work } = JSON.parse(text ?? '{}')
    assert.match(timestamp, /^\d{4}-.*Z$/)
    assert.deepEqual([status, last_message_at, consumer_lag], ['RUNNING', null, null])
    assert.deepEqual([work.concurrency, work.running, work.pid], [3, 0, process.pid])
    const heldMs = await redis.pttl(`${prefix}::worker:mail:w1`)
    assert.ok(heldMs > 0 && heldMs <= 30_000, `${heldMs} ms`)
  })
})
