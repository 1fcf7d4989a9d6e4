/** One BullMQ queue whose jobs have many names, as programs of BullMQ fill it and read it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob, NonRetryable } from 'millrace'
import { BaseWorker, DeadLetterManager, type HookedJob, queueOf, type WorkerJob } from 'millrace/workloads/framework'
import { z } from 'zod'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq, over } from './beside-bullmq.ts'

interface Hook {
  readonly url: string
}

class Webhooks extends BaseWorker<Hook, string> {
  readonly seen: unknown[] = []

  constructor() {
    super('webhook-dispatch', { concurrency: 20, limiter: { max: 100, duration: 1_000 } })
  }

  process(data: Hook, job: WorkerJob<Hook>): string {
    this.seen.push([job.name, job.attemptsMade, this.tenantContext?.orgId])
    if (data.url === 'gone') throw new NonRetryable('410 Gone')
    return `to ${data.url}`
  }

  override onFailed(job: HookedJob, _error: unknown, final: boolean): void {
    this.seen.push([job.name, job.attemptsMade, job.data, final])
  }
}

const embed = defineJob({
  type: 'embedding-batch',
  payload: z.object({ texts: z.array(z.string()) }),
  run: ({ payload, job }) => ({ name: job.name, count: payload.texts.length }),
})

describe('a BullMQ queue of many names', { timeout: 300_000 }, () => {
  // X067 X033
  test('is served by one worker, which gives each job to the handler of its name', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('ruvbot')
    const tenantContext = { orgId: 'acme' }
    const [hook, batch, bad, gone, fax] = await foreign.addBulk([
      { name: 'webhook-dispatch', data: { url: 'a', tenantContext } },
      { name: 'embedding-batch', data: { texts: ['x', 'y'] } },
      { name: 'embedding-batch', data: { texts: 7 } },
      { name: 'webhook-dispatch', data: { url: 'gone' } },
      { name: 'send-fax', data: {} },
    ])
    const webhooks = new Webhooks()
    const ruvbot = queueOf('ruvbot', [webhooks, embed], { concurrency: null, limiter: null })
    await mill.work([ruvbot])
    const done = (job: { readonly id?: string | undefined } | undefined) => over(mill, `ruvbot#${job?.id}`)
    assert.partialDeepStrictEqual(await done(hook), {
      type: 'ruvbot',
      result: 'to a',
      options: { name: 'webhook-dispatch' },
    })
    assert.deepEqual((await done(batch)).result, { name: 'embedding-batch', count: 2 })
    assert.equal((await done(bad)).error?.code, 'ERR_PAYLOAD_INVALID')
    assert.equal((await done(gone)).error?.message, '410 Gone')
    assert.equal(
      (await done(fax)).error?.message,
      "no worker of the queue 'ruvbot' is for jobs named 'send-fax'; it has workers for webhook-dispatch, embedding-batch",
    )
    await until(async () => webhooks.seen.length === 3)
    assert.deepEqual(
      new Set(webhooks.seen.map((seen) => JSON.stringify(seen))),
      new Set([
        '["webhook-dispatch",0,"acme"]',
        '["webhook-dispatch",0,null]',
        '["webhook-dispatch",1,{"url":"gone"},true]',
      ]),
    )
    assert.deepEqual(await foreign.getJobCounts('completed', 'failed'), { completed: 2, failed: 3 })
  })

  // X067
  test('takes named jobs of ours too, which a worker and a reader of BullMQ’s know by their names', async (t) => {
    const { mill, queue, redis, prefix, worker } = await besideBullmq(t)
    const ruvbot = queueOf('ruvbot', [embed])
    const { id } = await mill.enqueue(ruvbot, { texts: ['x'] }, { name: 'embedding-batch' })
    const keyed = await mill.enqueue(ruvbot, { texts: [] }, { name: 'embedding-batch', key: 'k' })
    const plain = await mill.enqueue(ruvbot, {})
    const foreign = queue('ruvbot')
    const names = await Promise.all([id, keyed.id, plain.id].map(async (one) => (await foreign.getJob(one))?.name))
    assert.deepEqual(names, ['embedding-batch', 'embedding-batch', 'ruvbot'])
    worker('ruvbot', async () => 'by BullMQ')
    assert.equal((await over(mill, id)).result, 'by BullMQ')
    assert.equal(await redis.hget(`${prefix}:ruvbot:${id}`, 'name'), 'embedding-batch')
  })

  // A169 X034
  test('a dead letter of a name is retried under its name', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('ruvbot')
    const plain = await foreign.add('embedding-batch', { texts: 7 })
    const ruvbot = queueOf('ruvbot', [embed])
    await mill.work([ruvbot])
    await over(mill, `ruvbot#${plain.id}`)
    const deadLetters = new DeadLetterManager(mill)
    const [entry] = await deadLetters.find({ queue: 'ruvbot', jobType: 'embedding-batch' })
    assert.partialDeepStrictEqual(entry, { jobType: 'embedding-batch', queue: 'ruvbot', jobData: { texts: 7 } })
    const { id } = await deadLetters.retry(entry?.id ?? '')
    assert.equal((await foreign.getJob(id))?.name, 'embedding-batch')
    assert.equal((await over(mill, id)).error?.code, 'ERR_PAYLOAD_INVALID')
  })
})
