import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AnyJob, defineJob, MillraceError } from '../index.ts'
import { drain } from './drain.ts'
import { Faults } from './fault-injection.ts'
import { openForTest } from './open-for-test.ts'

const hasCode = (code: string) => (error: unknown) => error instanceof MillraceError && error.code === code

test('what is due runs, in the order of the queue, and what is delayed stays until the clock has moved', async () => {
  await using t = await openForTest()
  const ran: unknown[] = []
  const note = defineJob({ type: 'note', run: ({ payload }) => void ran.push(payload) })
  await t.mill.enqueue(note, 'later', { delay: '3d' })
  await t.mill.enqueue(note, 'second')
  await t.mill.enqueue(note, 'first', { priority: 1 })
  assert.deepEqual(await drain(t.mill, [note]), { complete: 2, retry: 0, dead: 0, release: 0 })
  assert.deepEqual(ran, ['first', 'second'])
  await t.clock.advance('3d')
  assert.equal((await drain(t.mill, [note])).complete, 1)
  assert.deepEqual(ran, ['first', 'second', 'later'])
  assert.equal((await drain(t.mill, [note])).complete, 0)
})

test('jobs that a handler enqueues run too, and those of other definitions do not', async () => {
  await using t = await openForTest()
  const second = defineJob({ type: 'second', run: () => 2 })
  const other = defineJob({ type: 'other', run: () => assert.fail('nobody asked for it') })
  const first: AnyJob = defineJob({
    type: 'first',
    run: async () => {
      await t.mill.enqueue(second, null)
      await t.mill.enqueue(other, null)
    },
  })
  await t.mill.enqueue(first, null)
  assert.equal((await drain(t.mill, [first, second])).complete, 2)
  assert.equal((await t.mill.counts()).other?.ready, 1)
})

test('a failing job is retried when its backoff is over, then dies', async () => {
  await using t = await openForTest()
  const fails = defineJob({
    type: 'fails',
    attempts: 2,
    backoff: { kind: 'fixed', delay: '1m' },
    run: () => {
      throw new Error('no')
    },
  })
  await t.mill.enqueue(fails, null)
  assert.deepEqual(await drain(t.mill, [fails]), { complete: 0, retry: 1, dead: 0, release: 0 })
  await t.clock.advance('2m')
  assert.deepEqual(await drain(t.mill, [fails]), { complete: 0, retry: 0, dead: 1, release: 0 })
})

test('handlers that take real time are waited for, as many at once as asked for', async () => {
  await using t = await openForTest()
  const { promise: met, resolve } = Promise.withResolvers<void>()
  let running = 0
  const meets = defineJob({
    type: 'meets',
    run: async () => {
      running += 1
      if (running === 2) setTimeout(resolve, 20)
      await met
    },
  })
  await t.mill.enqueueMany(meets, [1, 2])
  assert.equal((await drain(t.mill, [meets], { concurrency: 2 })).complete, 2)
})

test('a queue that never gets empty is given up after so many starts', async () => {
  await using t = await openForTest()
  const again: AnyJob = defineJob({ type: 'again', run: async () => void (await t.mill.enqueue(again, null)) })
  await t.mill.enqueue(again, null)
  await assert.rejects(drain(t.mill, [again], { max: 20 }), /more than 20 starts/)
  await assert.rejects(drain(t.mill, [again], { max: 0 }), hasCode('ERR_OPTION_INVALID'))
})

test('a handler that waits for the clock makes it reject in real time, and closing gives the job back', async () => {
  const t = await openForTest()
  const sleeps = defineJob({
    type: 'sleeps',
    run: async ({ signal }) => {
      await t.clock.sleep(60_000, signal)
      signal.throwIfAborted()
    },
  })
  const { id } = await t.mill.enqueue(sleeps, null)
  await assert.rejects(drain(t.mill, [sleeps], { timeout: 1_000 }), (error: unknown) => {
    assert.ok(hasCode('ERR_WAIT_TIMEOUT')(error))
    assert.match(String(error), /0 ready, 1 held; move the clock/)
    return true
  })
  assert.equal((await t.mill.job(id))?.state, 'in_progress')
  await t.close()
  const released = t.events.some(({ name, event }) => name === 'job.settled' && event.outcome.kind === 'release')
  assert.ok(released, 'the job was given back')
})

test('failed claims are tried again, and given up when they do not end', async () => {
  const faults = new Faults().fail('claim', { nth: 1, times: 2 })
  await using t = await openForTest({ faults })
  const note = defineJob({ type: 'note', run: () => 1 })
  await t.mill.enqueue(note, null)
  assert.equal((await drain(t.mill, [note])).complete, 1)
  assert.ok(faults.calls('claim') >= 3)
  await t.mill.enqueue(note, null)
  faults.fail('claim', { times: Number.POSITIVE_INFINITY })
  await assert.rejects(drain(t.mill, [note]), hasCode('ERR_STORAGE_FAILED'))
})

test('it leaves neither a worker nor a timer behind, and another worker is not waited for', async () => {
  await using t = await openForTest()
  const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
  const job = defineJob({ type: 'job', run: ({ payload }) => (payload === 'gated' ? gate : undefined) })
  const elsewhere = await t.mill.work([job], { concurrency: 1, poll: '1d', reap: false })
  const started = t.mill.events.next('job.started')
  await t.mill.enqueue(job, 'gated')
  await started
  const waiting = t.clock.waiting
  await t.mill.enqueue(job, 'free')
  assert.equal((await drain(t.mill, [job])).complete, 1)
  assert.equal(t.clock.waiting, waiting)
  openGate()
  await elsewhere.stop()
})

test('what another worker settles meanwhile is not counted', async () => {
  await using t = await openForTest()
  const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
  const job = defineJob({
    type: 'job',
    run: async ({ payload }) => {
      if (payload === 'gated') return gate
      const otherSettled = t.mill.events.next('job.settled')
      openGate()
      await otherSettled
    },
  })
  const elsewhere = await t.mill.work([job], { concurrency: 1, poll: '1d', reap: false })
  const started = t.mill.events.next('job.started')
  await t.mill.enqueue(job, 'gated')
  await started
  await t.mill.enqueue(job, 'free')
  assert.equal((await drain(t.mill, [job])).complete, 1)
  assert.deepEqual([(await t.mill.counts()).job?.completed, elsewhere.running], [2, 0])
})
