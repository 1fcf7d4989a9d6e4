import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { defineJob, NonRetryable } from '../../src/index.ts'
import { drain, openForTest } from '../../src/testing/index.ts'
import { BaseWorker, DeadLetterManager, JobDispatcher, queueOf, WorkerScheduler, workerAlert } from './index.ts'
import { outletsOf, Told } from './rig.ts'

describe('a queue of many names', () => {
  // X067
  test('gives each job to the worker of its name, with that worker’s defaults and counters', async () => {
    await using stage = await openForTest()
    const { mill } = stage
    const { counted, lines, outlets } = outletsOf(stage)
    const hooks = new Told((data, job) => [job.name, data], {}, outlets, 'webhook-dispatch')
    const check = defineJob({ type: 'quota-check', payload: z.number(), run: ({ payload }) => payload + 1 })
    const queue = queueOf('ruvbot', [hooks, check])
    const dispatcher = new JobDispatcher(mill, [queue])
    const hook = await dispatcher.dispatch({ type: 'webhook-dispatch', data: { to: 'ann' } })
    const quota = await dispatcher.dispatchMany({ type: 'quota-check', data: [1, 2] })
    assert.partialDeepStrictEqual(await mill.job(hook.id), { type: 'ruvbot', attempts: 10, priority: 1 })
    await assert.rejects(dispatcher.dispatch({ type: 'quota-check', data: 'x' }), { code: 'ERR_PAYLOAD_INVALID' })
    await assert.rejects(dispatcher.dispatch({ type: 'data-export', data: {} }), { code: 'ERR_HANDLER_MISSING' })
    await drain(mill, [queue])
    assert.deepEqual(await mill.result(hook), ['webhook-dispatch', { to: 'ann' }])
    assert.deepEqual(await Promise.all(quota.map((receipt) => mill.result(receipt))), [2, 3])
    assert.deepEqual(counted, ['worker.webhook-dispatch.started', 'worker.webhook-dispatch.completed'])
    assert.deepEqual(new Set(lines.map(({ fields }) => fields.name)), new Set(['worker:webhook-dispatch']))
  })

  // X067 A168 X038
  test('makes a dead letter of an unknown name, which says the known ones, and alerts by the name', async () => {
    const alerts: object[] = []
    await using stage = await openForTest({ alerter: { send: (alert) => alerts.push(workerAlert(alert)) } })
    const { mill } = stage
    const fail = () => Promise.reject(new NonRetryable('410 Gone'))
    const queue = queueOf('ruvbot', [new Told(fail, {}, {}, 'webhook-dispatch'), new Told(fail)])
    assert.equal(queue.critical, true, 'one of its names is')
    const { id } = await mill.enqueue(queue, null, { name: 'send-fax' })
    await drain(mill, [queue])
    await mill.enqueue(queue, null, { name: 'webhook-dispatch' })
    await drain(mill, [queue])
    assert.equal(
      (await mill.job(id))?.error?.message,
      "no worker of the queue 'ruvbot' is for jobs named 'send-fax'; it has workers for webhook-dispatch, slack-sync",
    )
    assert.partialDeepStrictEqual(alerts, [
      { severity: 'warning', title: 'Worker send-fax final failure', tags: { jobType: 'send-fax', jobId: id } },
      { severity: 'high', title: 'Critical job moved to dead letter: webhook-dispatch' },
    ])
  })

  // A173
  test('has dead letters that are found and deleted by their name, with and without the queue', async () => {
    await using stage = await openForTest()
    const { mill } = stage
    const fail = () => Promise.reject(new NonRetryable('no such channel'))
    const own = new Told(fail).definition
    const queue = queueOf('ruvbot', [own, new Told(fail, {}, {}, 'data-export')])
    for (const name of ['slack-sync', 'data-export']) await mill.enqueue(queue, null, { name })
    await mill.enqueue(own, null)
    await drain(mill, [queue, own])
    const deadLetters = new DeadLetterManager(mill)
    const count = async (filter: Parameters<typeof deadLetters.find>[0]) => (await deadLetters.find(filter)).length
    assert.equal(await count({ jobType: 'slack-sync' }), 2)
    assert.equal(await count({ jobType: 'slack-sync', queue: 'ruvbot' }), 1)
    assert.equal(await count({ queue: 'ruvbot' }), 2)
    assert.equal(await deadLetters.purge({ jobType: 'slack-sync' }), 2)
    assert.deepEqual(
      (await deadLetters.find()).map(({ jobType }) => jobType),
      ['data-export'],
    )
  })

  // A169 A173 X034
  test('keeps the name over a retry of its dead letter', async () => {
    let isDown = true
    const fail = (): unknown => {
      if (isDown) throw Object.assign(new Error('gone'), { status: 410 })
      return 'sent'
    }
    await using stage = await openForTest()
    const { mill } = stage
    const queue = queueOf('ruvbot', [new Told(fail), new Told(fail, {}, {}, 'webhook-dispatch')])
    const { id } = await mill.enqueue(queue, { n: 1 }, { name: 'slack-sync' })
    await mill.enqueue(queue, { n: 2 }, { name: 'webhook-dispatch' })
    await drain(mill, [queue])
    const deadLetters = new DeadLetterManager(mill)
    const [entry, ...others] = await deadLetters.find({ queue: 'ruvbot', jobType: 'slack-sync' })
    assert.partialDeepStrictEqual(entry, { originalJobId: id, jobType: 'slack-sync', queue: 'ruvbot' })
    assert.deepEqual(others, [])
    isDown = false
    const retried = await deadLetters.retry(entry?.id ?? '')
    assert.partialDeepStrictEqual(await mill.job(retried.id), { type: 'ruvbot', options: { name: 'slack-sync' } })
    assert.equal((await drain(mill, [queue])).complete, 1)
    assert.equal(await deadLetters.purge({ queue: 'ruvbot' }), 0, 'webhook-dispatch is critical')
    assert.equal(await deadLetters.purge({ queue: 'ruvbot' }, { force: true }), 1)
  })

  test('takes the ticks of a scheduler', async () => {
    await using stage = await openForTest({ startMs: Date.UTC(2026, 0, 1, 0, 59, 59) })
    const { mill, clock } = stage
    const worker = new Told((data) => data, {}, {}, 'quota-check')
    const queue = queueOf('ruvbot', [worker])
    const schedules = [
      { name: 'quotas', cron: '0 0 * * * *', jobType: 'quota-check', jobData: { deep: true } },
    ] as const
    const scheduler = new WorkerScheduler(mill, { schedules, handled: [queue] })
    await scheduler.start()
    await clock.advance('1s')
    await scheduler.stop()
    await drain(mill, [queue])
    const [job] = await mill.jobs()
    assert.partialDeepStrictEqual(job, { type: 'ruvbot', options: { name: 'quota-check' }, result: { deep: true } })
  })

  // A75 X067
  test('is asked for what holds for all its names, because one name cannot have a limit of its own', async () => {
    class Limited extends BaseWorker<number, null> {
      process(): null {
        return null
      }
    }
    const config = { concurrency: 2, limiter: { max: 1, duration: 1_000 } }
    const worker = new Limited('slack-sync', config)
    const refused = { code: 'ERR_OPTION_INVALID', message: /'slack-sync' has a '(concurrency|limiter)'.*or null/ }
    assert.throws(() => queueOf('ruvbot', [worker]), refused)
    assert.throws(() => queueOf('ruvbot', [worker], { concurrency: 4 }), refused)
    assert.throws(() => queueOf('ruvbot', [worker], { limiter: null }), refused)
    const lifted = queueOf('ruvbot', [worker], { concurrency: null, limiter: null })
    assert.deepEqual([lifted.concurrency, lifted.limit], [null, null])
    const queue = queueOf('ruvbot', [worker], { concurrency: 4, limiter: { max: 10, duration: 60_000 } })
    assert.deepEqual([queue.concurrency, queue.limit], [4, { max: 10, perMs: 60_000 }])
    const misspelt: object = { limit: null }
    assert.throws(() => queueOf('ruvbot', [], misspelt), { code: 'ERR_OPTION_INVALID', message: /limiter/ })
  })
})
