import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { z } from 'zod'
import { Mill } from '../../../src/client/mill.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { openEngine } from '../../../src/engine/open.ts'
import { defineJob } from '../../../src/job/definition.ts'
import { drain } from '../../../src/testing/drain.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { calculateBackoff, JobQueueRepository } from './job-queue-repository.ts'

let clock: TestClock
let engine: Engine
let queue: JobQueueRepository

// B176
beforeEach(async () => {
  clock = new TestClock()
  engine = await openEngine('sqlite::memory:', { clock, migrate: true })
  queue = new JobQueueRepository(engine, { types: ['greet', 'other'], worker: 'host:1:test', clock, random: () => 0 })
})
afterEach(() => engine.close())

// B177 B188 X095
test('create gives a queued job, and a second one with its key throws', async () => {
  const job = await queue.create({ type: 'greet', payload: { name: 'Ada' }, idempotencyKey: 'k' })
  assert.equal(job.state, 'queued')
  assert.deepEqual(JSON.parse(job.payload), { name: 'Ada' })
  await assert.rejects(queue.create({ type: 'greet', payload: {}, idempotencyKey: 'k' }), { code: 'ERR_JOB_DUPLICATE' })
})

// X114
test('create takes what a schema would refuse; it is refused when it is run', async () => {
  const { id } = await queue.create({ type: 'greet', payload: { conversation_id: 'test-123' }, maxRetries: 1 })
  const mill = new Mill(engine, { clock })
  const calls: unknown[] = []
  const ulid = z.object({ conversation_id: z.string().regex(/^[0-9A-HJKMNP-TV-Z]{26}$/) })
  const greet = defineJob({ type: 'greet', payload: ulid, run: ({ payload }) => calls.push(payload) })
  await drain(mill, [greet])
  const refused = await queue.findById(id)
  assert.deepEqual([refused?.state, calls], ['dead_letter', []])
  assert.match(refused?.error?.message ?? '', /^Invalid payload:/)
})

// B106 B107
test('enqueueJob answers a duplicate instead of throwing, and stores nothing', async () => {
  const first = await queue.enqueueJob('greet', { n: 1 }, 'k')
  assert.equal(first.enqueued, true)
  assert.deepEqual(await queue.enqueueJob('greet', { n: 2 }, 'k'), { enqueued: false, reason: 'duplicate' })
  const jobs = await queue.findByType('greet')
  assert.equal(jobs.length, 1)
  const [job] = jobs
  assert.deepEqual([job?.runAtMs, job?.createdAtMs, job?.updatedAtMs], [clock.nowMs(), clock.nowMs(), clock.nowMs()])
})

// B178 B43 B96
test('dequeue leases the job, and the next finds nothing', async () => {
  await queue.create({ type: 'greet', payload: {} })
  const job = await queue.dequeue()
  assert.equal(job?.state, 'in_progress')
  assert.equal(job?.leaseOwner, 'host:1:test')
  assert.equal(job?.leaseUntilMs, clock.nowMs() + 60_000)
  assert.equal(await queue.dequeue(), null)
})

// B84 B94 B95
test('the lower priority number is served first, and nothing before its time', async () => {
  for (const priority of [10, 5, 1]) await queue.create({ type: 'greet', payload: { priority }, priority })
  const order: (number | undefined)[] = []
  for (let index = 0; index < 3; index += 1) order.push((await queue.dequeue())?.priority)
  assert.deepEqual(order, [1, 5, 10])
})

// B44 B89 B52
test('markCompleted stores the result', async () => {
  const { id } = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  assert.equal(await queue.markCompleted(id, { sent: true }), true)
  const job = await queue.findById(id)
  assert.equal(job?.state, 'completed')
  assert.deepEqual(job?.result, { sent: true })
  assert.equal(job?.completedAtMs, clock.nowMs())
  await assert.rejects(queue.markCompleted(id), { code: 'ERR_LEASE_LOST' })
})

// B179 B121 B45 B47 B118
test('markFailed after one claim of three puts the job back for later', async () => {
  const { id } = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  assert.equal(await queue.markFailed(id, new Error('boom')), true)
  const job = await queue.findById(id)
  assert.deepEqual(
    [job?.state, job?.attempt, job?.error?.message, job?.runAtMs, job?.leaseOwner, job?.leaseUntilMs, job?.startedAtMs],
    ['queued', 1, 'boom', clock.nowMs() + 2_000, null, null, null],
  )
  const names = (await engine.inspector?.history(id))?.map((event) => event.name)
  assert.deepEqual(names, ['enqueued', 'started', 'failed', 'retried'])
})

// B180 B48 B123 X113
test('two failures of two make a dead letter with its lease cleared', async () => {
  const { id } = await queue.create({ type: 'greet', payload: {}, maxRetries: 2 })
  await queue.dequeue()
  await queue.markFailed(id, new Error('one'))
  await clock.advance('3s')
  await queue.dequeue()
  await queue.markFailed(id, new Error('two'))
  const job = await queue.findById(id)
  // X105
  assert.deepEqual(
    [job?.state, job?.attempt, job?.error?.message, job?.leaseOwner, job?.leaseUntilMs, job?.completedAtMs],
    ['dead_letter', 2, 'two', null, null, clock.nowMs()],
  )
})

// B46 B99 X080 X081
test('the watchdog returns expired leases only, and says how many', async () => {
  const early = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  await clock.advance('30s')
  const late = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  await clock.advance('31s')
  assert.equal(await queue.releaseExpiredLeases(), 1)
  const back = await queue.findById(early.id)
  assert.deepEqual(
    [back?.state, back?.leaseOwner, back?.leaseUntilMs, back?.startedAtMs, back?.attempt],
    ['queued', null, null, null, 1],
  )
  assert.equal((await queue.findById(late.id))?.state, 'in_progress')
  // X079: the holder of the expired lease changes nothing.
  assert.equal(await queue.markCompleted(early.id), false)
  assert.equal((await queue.findById(early.id))?.state, 'queued')
})

// B126 B129
test('dead letters are listed newest first, without payloads for inspection', async () => {
  const ids: string[] = []
  for (const name of ['a', 'b', 'c']) {
    ids.push((await queue.create({ type: 'greet', payload: { secret: name }, maxRetries: 1 })).id)
    await queue.dequeue()
    await queue.markFailed(ids.at(-1) ?? '', new Error(name))
    await clock.advance('1s')
  }
  assert.deepEqual(
    (await queue.getDeadLetterJobs()).map((job) => job.id),
    ids.toReversed(),
  )
  assert.equal((await queue.getDeadLetterJobs(2)).length, 2)
  const [shown] = await queue.inspectDeadLetterQueue()
  assert.deepEqual(Object.keys(shown ?? {}), ['id', 'type', 'attempt', 'error', 'createdAtMs', 'completedAtMs'])
})

// B127 B128 B50 X126
test('dead letters go back to the queue one by one or by type, and only dead letters do', async () => {
  const letters: string[] = []
  for (const type of ['greet', 'other', 'other']) {
    const { id } = await queue.create({ type, payload: {}, maxRetries: 1, idempotencyKey: `${type}-${letters.length}` })
    await queue.dequeue()
    await queue.markFailed(id, new Error('x'))
    letters.push(id)
  }
  const [greet = ''] = letters
  assert.equal(await queue.retryDeadLetterJob(greet), true)
  const job = await queue.findById(greet)
  assert.deepEqual(
    [job?.state, job?.attempt, job?.error, job?.completedAtMs, job?.startedAtMs, job?.runAtMs, job?.key],
    ['queued', 0, null, null, null, clock.nowMs(), 'greet-0'],
  )
  assert.equal(await queue.retryDeadLetterJob(greet), false)
  assert.equal(await queue.retryDeadLetterJob('unknown'), false)
  assert.equal(await queue.retryDeadLetterJobsByType('other'), 2)
  assert.equal((await queue.findByStatus('dead_letter')).length, 0)
})

// B119 B120
test('calculateBackoff doubles from 2 s to 60 s with up to a second more', () => {
  const spans = [1, 2, 3, 6, 10].map((attempts) => [
    calculateBackoff(attempts, () => 0),
    calculateBackoff(attempts, () => 1),
  ])
  assert.deepEqual(spans, [
    [2_000, 3_000],
    [4_000, 5_000],
    [8_000, 9_000],
    [60_000, 61_000],
    [60_000, 61_000],
  ])
})
