import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { defineJob, type JobView, NonRetryable, openDesk } from '../index.ts'
import { drain, openForTest } from '../testing/index.ts'
import type { AnyHandledJob } from './definition.ts'

/** A queue of two names; other names are dead letters. */
function queueWith(...byName: readonly AnyHandledJob[]) {
  return defineJob({
    type: 'ruvbot',
    byName,
    run: ({ job }) => {
      throw new NonRetryable(`nobody here runs '${job.name}'`)
    },
  })
}

// X067
test('a job of a queue is checked, run, retried and told to the hooks of its name', async () => {
  const hooked: unknown[][] = []
  const mail = defineJob({
    type: 'mail',
    payload: z.object({ to: z.string().transform((text) => text.toUpperCase()) }),
    hooks: { onComplete: ({ type, name }, result) => hooked.push([type, name, result]) },
    run: ({ payload, job }) => `${job.name} to ${payload.to}`,
  })
  const flaky = defineJob({
    type: 'flaky',
    attempts: 2,
    priority: 9,
    backoff: { kind: 'fixed', delay: 0 },
    removeOnFail: true,
    run: () => Promise.reject(new Error('no')),
  })
  const queue = queueWith(mail, flaky)
  await using stage = await openForTest({ jobs: [queue] })
  const { mill } = stage
  const sent = await mill.enqueue(queue, { to: 'ann' }, { name: 'mail' })
  const dead = await mill.enqueue('ruvbot', null, { name: 'flaky' })
  const other = await mill.enqueue(queue, null, { name: 'fax' })
  const plain = await mill.enqueue(queue, null)
  assert.partialDeepStrictEqual(await mill.job(dead.id), { type: 'ruvbot', attempts: 2, priority: 9 })
  await assert.rejects(mill.enqueue(queue, { to: 7 }, { name: 'mail' }), { code: 'ERR_PAYLOAD_INVALID' })
  await assert.rejects(mill.enqueue(queue, null, { name: '' }), { code: 'ERR_OPTION_INVALID', message: /'name'/ })
  assert.deepEqual(await drain(mill, [queue]), { complete: 1, retry: 1, dead: 3, release: 0 })
  assert.equal(await mill.result(sent), 'mail to ANN')
  assert.deepEqual(hooked, [['ruvbot', 'mail', 'mail to ANN']])
  assert.equal(await mill.job(dead.id), null, 'removed, as its own definition says')
  const messageOf = (view: JobView | null) => view?.error?.message
  assert.equal(messageOf(await mill.job(other.id)), "nobody here runs 'fax'")
  assert.equal(messageOf(await mill.job(plain.id)), "nobody here runs 'ruvbot'")
})

test('every line about such a job has its name', async () => {
  const mail = defineJob({ type: 'mail', run: ({ log }) => log.info('by the handler') })
  const queue = queueWith(mail)
  await using stage = await openForTest()
  await stage.mill.enqueue(queue, null, { name: 'mail' })
  await drain(stage.mill, [queue])
  const named = stage.lines.filter(({ fields }) => fields.job_name === 'mail').map(({ text }) => text)
  assert.deepEqual(named, ['Job claimed', 'Job started', 'by the handler', 'Job completed'])
})

test('the timeout is that of the name', async () => {
  const slow = defineJob({ type: 'slow', timeout: '1s', attempts: 1, run: () => new Promise(() => {}) })
  const queue = queueWith(slow)
  await using stage = await openForTest()
  const { mill, clock } = stage
  const { id } = await mill.enqueue(queue, null, { name: 'slow' })
  const settled = mill.events.next('job.settled')
  await mill.work([queue], { keeper: false })
  await clock.advance('1s')
  await settled
  assert.equal((await mill.job(id))?.error?.code, 'ERR_JOB_TIMEOUT')
})

test('a schedule of the queue enqueues a job of a name', async () => {
  const mail = defineJob({ type: 'mail', run: ({ job }) => job.name })
  const queue = queueWith(mail)
  await using stage = await openForTest({ jobs: [queue] })
  const { mill } = stage
  await mill.schedules.upsert('nightly', { type: 'ruvbot', cron: '0 3 * * *', options: { name: 'mail' } })
  const { id } = await mill.schedules.runNow('nightly')
  await drain(mill, [queue])
  assert.equal(await mill.result(id), 'mail')
})

test('what holds for a whole queue only is refused for a name', () => {
  const refused: readonly (readonly [AnyHandledJob, RegExp])[] = [
    [defineJob({ type: 'a', concurrency: 2, run: () => null }), /'concurrency' of 'a'.*give it to 'ruvbot'/],
    [defineJob({ type: 'a', concurrency: { max: 2 }, run: () => null }), /'concurrency' of 'a'/],
    [defineJob({ type: 'a', limit: { max: 1, per: '1s' }, run: () => null }), /'limit' of 'a'/],
    [defineJob({ type: 'a', schedule: '0 3 * * *', run: () => null }), /'schedule' of 'a'/],
    [defineJob({ type: 'a', retention: { completed: '1d' }, run: () => null }), /'retention' of 'a'/],
    [queueWith(), /'byName' of 'ruvbot'/],
  ]
  for (const [job, message] of refused) {
    assert.throws(() => queueWith(job), { code: 'ERR_OPTION_INVALID', message })
  }
  const mail = defineJob({ type: 'mail', run: () => null })
  assert.throws(() => queueWith(mail, mail), { message: /two definitions of 'mail'/ })
})

test('a queue with a critical name is critical, and needs a handler for each name', async () => {
  const erase = defineJob({ type: 'data-deletion', critical: true, run: () => null })
  assert.equal(queueWith(erase).critical, true)
  assert.equal(queueWith().critical, false)
  await using stage = await openForTest()
  const unhandled = defineJob({ type: 'ruvbot', byName: [defineJob({ type: 'mail' })], run: () => null })
  await assert.rejects(stage.mill.work([unhandled]), { code: 'ERR_HANDLER_MISSING', message: /'mail'/ })
})

test('an edited dead letter is checked by the schema of its name', async () => {
  const mail = defineJob({ type: 'mail', payload: z.number(), run: () => Promise.reject(new NonRetryable('no')) })
  const queue = queueWith(mail)
  await using stage = await openForTest()
  const { mill } = stage
  const { id } = await mill.enqueue(queue, 1, { name: 'mail' })
  await drain(mill, [queue])
  const desk = openDesk(mill, { jobs: [queue] })
  const ann = { who: 'ann', reason: 'test' }
  await assert.rejects(desk.replay(id, ann, { payload: 'x' }), { code: 'ERR_PAYLOAD_INVALID' })
  await desk.replay(id, ann, { payload: 2 })
  assert.equal((await mill.job(id))?.payload, '2')
})
