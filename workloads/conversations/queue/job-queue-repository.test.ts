import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, test } from 'node:test'
import { z } from 'zod'
import { open } from '../../../src/client/mill.ts'
import { defineJob } from '../../../src/job/definition.ts'
import { drain } from '../../../src/testing/drain.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { runMigrations } from '../store/database.ts'
import { JobQueueRepository } from './job-queue-repository.ts'

let clock: TestClock
let db: DatabaseSync
let queue: JobQueueRepository
let lines: [level: string, text: string, fields: Readonly<Record<string, unknown>>][]
const now = (laterMs = 0): string => toIso(clock.nowMs() + laterMs)

// B176
beforeEach(() => {
  clock = new TestClock()
  lines = []
  const write =
    (level: string) =>
    (text: string, fields: Readonly<Record<string, unknown>> = {}) =>
      void lines.push([level, text, fields])
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  db = new DatabaseSync(':memory:')
  runMigrations(db, { clock })
  queue = new JobQueueRepository(db, { worker: 'host:1:test', clock, log, random: () => 0 })
})
afterEach(() => db.close())

// B177 B188 X095
test('create gives a queued job, and a second one with its key throws', () => {
  const payload = { conversation_id: 'test-123' }
  const job = queue.create({ type: 'sanitize_ai_validation', payload, idempotency_key: 'test-key' })
  assert.deepEqual(job, {
    id: job.id,
    type: 'sanitize_ai_validation',
    status: 'queued',
    priority: 1,
    scheduled_at: now(),
    lease_owner: null,
    lease_until: null,
    payload,
    idempotency_key: 'test-key',
    attempts: 0,
    max_retries: 3,
    error: null,
    created_at: now(),
    updated_at: now(),
    started_at: null,
    completed_at: null,
    result: null,
  })
  assert.throws(() => queue.create({ type: 'sanitize_ai_validation', payload, idempotency_key: 'test-key' }), {
    code: 'ERR_JOB_DUPLICATE',
  })
  assert.throws(() => queue.create({ type: 'greet', payload: {}, priority: 11 }), { code: 'ERR_OPTION_INVALID' })
})

// X091
test("the pipeline's jobs have their own priorities and attempts, other types the defaults", () => {
  const figures = ['sanitize_ai_validation', 'extract_learning', 'mine_upload', 'other', 'tostring'].map((type) => {
    const enqueued = queue.enqueueJob(type, {})
    const job = enqueued.enqueued ? queue.findById(enqueued.id) : null
    return [job?.priority, job?.max_retries]
  })
  assert.deepEqual(figures, [
    [1, 3],
    [5, 3],
    [10, 5],
    [5, 3],
    [5, 3],
  ])
})

// X114
test('create takes what a schema would refuse; it is refused when it is run', async () => {
  const { id } = queue.create({ type: 'greet', payload: { conversation_id: 'test-123' }, max_retries: 1 })
  const mill = await open(db, { clock })
  const calls: unknown[] = []
  const ulid = z.object({ conversation_id: z.string().regex(/^[0-9A-HJKMNP-TV-Z]{26}$/) })
  const greet = defineJob({ type: 'greet', payload: ulid, run: ({ payload }) => calls.push(payload) })
  await drain(mill, [greet])
  await mill.close()
  const refused = queue.findById(id)
  assert.deepEqual([refused?.status, calls], ['dead_letter', []])
  assert.match(refused?.error ?? '', /^Invalid payload:/)
})

// B106 B107
test('enqueueJob answers a duplicate instead of throwing, stores nothing and logs it; other errors are thrown', () => {
  const first = queue.enqueueJob('greet', { n: 1 }, 'k')
  assert.equal(first.enqueued, true)
  assert.deepEqual(queue.enqueueJob('greet', { n: 2 }, 'k'), { enqueued: false, reason: 'duplicate' })
  assert.deepEqual(
    queue.findByType('greet').map((job) => [job.payload, job.scheduled_at, job.created_at, job.updated_at]),
    [[{ n: 1 }, now(), now(), now()]],
  )
  assert.deepEqual(
    lines.map(([level, text]) => [level, text]),
    [['info', 'Job not enqueued: a live job has its key']],
  )
  assert.throws(() => queue.enqueueJob('greet', () => {}), { code: 'ERR_PAYLOAD_NOT_JSON' })
})

// B178 B43 B96 B93
test('dequeue leases the job, and the next finds nothing', () => {
  queue.create({ type: 'greet', payload: {} })
  const job = queue.dequeue()
  assert.deepEqual(
    [job?.status, job?.lease_owner, job?.lease_until, job?.started_at, job?.attempts],
    ['in_progress', 'host:1:test', now(60_000), now(), 1],
  )
  assert.equal(queue.dequeue(), null)
})

// B97 X116
test('the length of a lease can be chosen; the default owner is host, process and a suffix', () => {
  const other = new JobQueueRepository(db, { leaseMs: 5_000, clock })
  queue.create({ type: 'greet', payload: {} })
  const job = other.dequeue()
  assert.equal(job?.lease_until, now(5_000))
  assert.ok(job?.lease_owner?.startsWith(`${hostname()}:${process.pid}:`))
})

// B84 B94 B95
test('the lower priority number is served first, over all types, and nothing before its time', async () => {
  for (const priority of [10, 5, 1]) queue.create({ type: `type-${priority}`, payload: {}, priority })
  const waiting = queue.create({ type: 'greet', payload: {}, priority: 1 })
  db.prepare('UPDATE job_queue SET scheduled_at = ? WHERE id = ?').run(now(1_000), waiting.id)
  const order = [1, 2, 3, 4].map(() => queue.dequeue()?.priority)
  assert.deepEqual(order, [1, 5, 10, undefined])
  await clock.advance('1s')
  assert.equal(queue.dequeue()?.id, waiting.id)
})

test('a job that another program put back without attempts left becomes a dead letter, and the next is taken', () => {
  const used = queue.create({ type: 'greet', payload: {} })
  db.prepare('UPDATE job_queue SET attempts = 3 WHERE id = ?').run(used.id)
  const next = queue.create({ type: 'greet', payload: {} })
  assert.deepEqual([queue.dequeue()?.id, queue.findById(used.id)?.status], [next.id, 'dead_letter'])
})

// X117
test('with types, dequeue takes only those; a paused type is left alone', async () => {
  const some = new JobQueueRepository(db, { types: ['mine'], clock })
  queue.create({ type: 'other', payload: {} })
  assert.equal(some.dequeue(), null)
  const mill = await open(db, { clock })
  await mill.pause('other')
  assert.equal(queue.dequeue(), null)
  await mill.resume('other')
  assert.equal(queue.dequeue()?.type, 'other')
  await mill.close()
})

// B44 B89 B52 B49 B160 B161
test('markCompleted stores the result, frees the key, and cannot be repeated', async () => {
  const { id } = queue.create({ type: 'greet', payload: { list: [1, null] }, idempotency_key: 'k' })
  assert.deepEqual(queue.dequeue()?.payload, { list: [1, null] })
  await clock.advance(1_500)
  assert.equal(queue.markCompleted(id, { sent: true }), true)
  const job = queue.findById(id)
  assert.deepEqual([job?.status, job?.result, job?.completed_at], ['completed', { sent: true }, now()])
  assert.equal(queue.create({ type: 'greet', payload: {}, idempotency_key: 'k' }).status, 'queued')
  assert.equal(queue.findById(id)?.idempotency_key, 'k')
  assert.throws(() => queue.markCompleted(id), { code: 'ERR_LEASE_LOST' })
  assert.deepEqual(
    lines.map(([, text, { duration_ms, priority }]) => [text, duration_ms, priority]),
    [
      ['Job claimed', undefined, 5],
      ['Job completed', 1_500, undefined],
    ],
  )
})

// B179 B121 B122 B45 B47 B118 B162
test('markFailed after one claim of three puts the job back for later, through failed', async () => {
  const { id } = queue.create({ type: 'greet', payload: {}, max_retries: 3 })
  queue.dequeue()
  assert.equal(queue.markFailed(id, 'Network error'), true)
  const job = queue.findById(id)
  assert.deepEqual(
    [job?.status, job?.attempts, job?.error, job?.scheduled_at, job?.lease_owner, job?.lease_until, job?.started_at],
    ['queued', 1, 'Network error', now(2_000), null, null, null],
  )
  const mill = await open(db, { clock })
  assert.deepEqual(
    (await mill.history(id)).map((event) => event.name),
    ['enqueued', 'started', 'failed', 'retried'],
  )
  await mill.close()
  assert.deepEqual(lines.at(-1), [
    'warn',
    'Job retried in 2000 ms (attempt 1 of 3)',
    {
      job_id: id,
      job_type: 'greet',
      worker_id: 'host:1:test',
      attempts: 1,
      attempts_max: 3,
      delay_ms: 2_000,
      error: 'Network error',
    },
  ])
})

// B180 B48 B123 B125 X105 X113
test('two failures of two make a dead letter with its lease cleared', async () => {
  const { id } = queue.create({ type: 'greet', payload: {}, max_retries: 2 })
  for (const text of ['one', 'two']) {
    await clock.advance('3s')
    queue.dequeue()
    queue.markFailed(id, new Error(text))
  }
  const job = queue.findById(id)
  assert.deepEqual(
    [job?.status, job?.attempts, job?.error, job?.lease_owner, job?.lease_until, job?.completed_at],
    ['dead_letter', 2, 'two', null, null, now()],
  )
  assert.partialDeepStrictEqual(lines.at(-1), ['error', 'Job moved to dead_letter', { attempts: 2, error: 'two' }])
})

// B46 B99 X080 X081
test('the watchdog returns expired leases only, and says how many', async () => {
  const early = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  await clock.advance('30s')
  const late = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  await clock.advance('31s')
  assert.equal(queue.releaseExpiredLeases(), 1)
  const back = queue.findById(early.id)
  assert.deepEqual(
    [back?.status, back?.lease_owner, back?.lease_until, back?.started_at, back?.attempts, back?.scheduled_at],
    ['queued', null, null, null, 1, now(2_000)],
  )
  assert.equal(queue.findById(late.id)?.status, 'in_progress')
  assert.partialDeepStrictEqual(lines.at(-1), ['warn', 'Expired leases recovered', { count: 1 }])
  // X079: the holder of the expired lease changes nothing, and that is logged.
  assert.equal(queue.markCompleted(early.id), false)
  assert.equal(queue.findById(early.id)?.status, 'queued')
  assert.equal(lines.at(-1)?.[1], 'Lease lost')
})

// B126 B129
test('dead letters are listed newest first, without payloads for inspection', async () => {
  const ids: string[] = []
  for (const name of ['a', 'b', 'c']) {
    ids.push(queue.create({ type: 'greet', payload: { secret: name }, max_retries: 1 }).id)
    queue.dequeue()
    queue.markFailed(ids.at(-1) ?? '', new Error(name))
    await clock.advance('1s')
  }
  assert.deepEqual(
    queue.getDeadLetterJobs().map((job) => job.id),
    ids.toReversed(),
  )
  assert.equal(queue.getDeadLetterJobs(2).length, 2)
  const [shown] = queue.inspectDeadLetterQueue()
  assert.deepEqual(Object.keys(shown ?? {}), ['id', 'type', 'attempts', 'error', 'created_at', 'completed_at'])
})

// B127 B128 B50 X126
test('dead letters go back to the queue one by one or by type, and only dead letters do', async () => {
  const letters: string[] = []
  for (const type of ['greet', 'other', 'other']) {
    const key = `${type}-${letters.length}`
    const { id } = queue.create({ type, payload: {}, max_retries: 1, idempotency_key: key })
    queue.dequeue()
    queue.markFailed(id, new Error('x'))
    letters.push(id)
  }
  const [greet = ''] = letters
  await clock.advance('1m')
  assert.equal(queue.releaseExpiredLeases(), 0)
  assert.equal(queue.dequeue(), null)
  assert.equal(queue.retryDeadLetterJob(greet), true)
  assert.deepEqual(lines.at(-1), ['info', 'Dead letter retried', { job_id: greet }])
  const job = queue.findById(greet)
  assert.deepEqual(
    [job?.status, job?.attempts, job?.error, job?.completed_at, job?.started_at, job?.scheduled_at, job?.updated_at],
    ['queued', 0, null, null, null, now(), now()],
  )
  assert.equal(job?.idempotency_key, 'greet-0')
  assert.equal(queue.retryDeadLetterJob(greet), false)
  assert.equal(queue.retryDeadLetterJob('unknown'), false)
  assert.equal(queue.retryDeadLetterJobsByType('other'), 2)
  assert.deepEqual(lines.at(-1), ['info', 'Dead letters retried', { job_type: 'other', count: 2 }])
  assert.equal(queue.findByStatus('dead_letter').length, 0)
  assert.equal(queue.findByStatus('queued').length, 3)
})
