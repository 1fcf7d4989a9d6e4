import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob, open } from 'millrace'
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

  test('a worker on Redis is listed for other processes, and its beats are no keys of BullMQ’s', async (t) => {
    const { mill, redis, prefix, url } = await besideBullmq(t)
    const other = await open(url)
    t.after(() => other.close())
    await mill.work([mail], { id: 'w1', concurrency: 3 })
    await until(async () => (await other.workers()).some(({ id }) => id === 'w1'))
    const ours = await redis.keys(`${prefix}::*records*`)
    assert.ok(ours.length > 0)
  })
})
