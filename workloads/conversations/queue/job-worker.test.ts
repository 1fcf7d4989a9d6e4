import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, test } from 'node:test'
import { open } from '../../../src/client/mill.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { hookHandler } from '../hook/handler.ts'
import { createSanitizer } from '../sanitize/sanitize.ts'
import { runMigrations } from '../store/database.ts'
import { JobQueueRepository } from './job-queue-repository.ts'
import { JobWorker, type JobWorkerOptions } from './job-worker.ts'

const files = tempFiles()
let db: DatabaseSync
let queue: JobQueueRepository
let lines: string[]
const write = (text: string): void => void lines.push(text)
const log = { debug: write, info: write, warn: write, error: write }

beforeEach(() => {
  lines = []
  db = new DatabaseSync(':memory:')
  runMigrations(db)
  queue = new JobQueueRepository(db)
})
afterEach(() => db.close())

// B181 X109 X112
test('a worker runs a queued job, and the queue can be read after it has shut down', async () => {
  const called = Promise.withResolvers<{ test: boolean }>()
  const test_job = async (payload: { test: boolean }) => {
    called.resolve(payload)
    return { success: true }
  }
  const worker = new JobWorker({ db, handlers: { test_job }, pollInterval: 100 })
  queue.create({ type: 'test_job', payload: { test: true } })
  queue.create({ type: 'unknown', payload: {} })
  await worker.start()
  assert.deepEqual(await called.promise, { test: true })
  await worker.shutdown('TEST')
  assert.deepEqual(
    queue.findByStatus('completed').map(({ result, attempts }) => [result, attempts]),
    [[{ success: true }, 1]],
  )
  assert.equal(queue.findByType('unknown')[0]?.attempts, 0)
})

// B86
test('a job that is created on the same handle while the worker is idle is found at the next poll', async () => {
  const called = Promise.withResolvers<void>()
  const worker = new JobWorker({ db, handlers: { test_job: () => called.resolve() }, pollInterval: 20 })
  await worker.start()
  queue.create({ type: 'test_job', payload: {} })
  await called.promise
  await worker.shutdown('TEST')
  assert.equal(queue.findByStatus('completed').length, 1)
})

interface Stage {
  readonly clock: TestClock
  readonly worker: JobWorker
  readonly repository: JobQueueRepository
}

function staged(handlers: NonNullable<JobWorkerOptions['handlers']>, more: Partial<JobWorkerOptions> = {}): Stage {
  const clock = new TestClock()
  const worker = new JobWorker({ db, handlers, pollInterval: 100, clock, log, random: () => 0, ...more })
  return { clock, worker, repository: new JobQueueRepository(db, { clock }) }
}

// B182 B47
test('a handler that fails once and then succeeds runs exactly twice, within five seconds', async () => {
  let attempts = 0
  const { clock, worker, repository } = staged({
    test_job: () => {
      attempts += 1
      if (attempts < 2) throw new Error('Temporary failure')
      return { success: true }
    },
  })
  const { id } = repository.create({ type: 'test_job', payload: {}, max_retries: 3 })
  await worker.start()
  await clock.advance('5s')
  await worker.shutdown('TEST')
  assert.deepEqual(
    [attempts, repository.findById(id)?.status, repository.findByStatus('completed').length],
    [2, 'completed', 1],
  )
})

// B132 B136 B141
test('a shutdown waits for the job that runs; a second call returns the same promise and says nothing new', async () => {
  const [begun, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  const { worker, repository } = staged({
    test_job: () => {
      begun.resolve()
      return finish.promise
    },
  })
  const { id } = repository.create({ type: 'test_job', payload: {} })
  await worker.start()
  await begun.promise
  const first = worker.shutdown('SIGTERM')
  assert.equal(worker.shutdown('SIGINT'), first)
  finish.resolve('done')
  await Promise.all([first, worker.stopped])
  assert.deepEqual([repository.findById(id)?.status, repository.findById(id)?.result], ['completed', 'done'])
  const told = ['Worker starting', 'Signal received', 'Waiting for job', 'Shutdown complete', 'Worker stopped']
  assert.deepEqual(
    lines.filter((line) => told.includes(line)),
    told,
  )
})

// B133 B135 X111
test('after 30 seconds an unfinished job is given back with its attempt', async () => {
  const begun = Promise.withResolvers<void>()
  const { clock, worker, repository } = staged({
    test_job: () => {
      begun.resolve()
      return new Promise(() => {})
    },
  })
  const { id } = repository.create({ type: 'test_job', payload: {} })
  await worker.start()
  await begun.promise
  let isDown = false
  const down = worker.shutdown('TEST').then(() => {
    isDown = true
  })
  await clock.advance('29s')
  assert.equal(isDown, false)
  await clock.advance('10s')
  await down
  const job = repository.findById(id)
  assert.deepEqual(
    [job?.status, job?.attempts, job?.lease_owner, job?.lease_until, job?.started_at],
    ['queued', 0, null, null, null],
  )
  assert.ok(lines.includes('Job not finished in time'))
})

// B131 B134 X109 X110
test('signals shut it down and their listeners go; the process lives on and the handle stays usable', async () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const before = process.listenerCount(signal)
    const { worker, repository } = staged({ test_job: () => {} })
    await worker.start()
    assert.equal(process.listenerCount(signal), before + 1)
    process.kill(process.pid, signal)
    await worker.stopped
    assert.equal(process.listenerCount(signal), before)
    assert.equal(repository.create({ type: 'test_job', payload: {} }).status, 'queued')
  }
  assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
})

// X112
test('start can be called twice but not after a shutdown; a shutdown without a start has nothing to do', async () => {
  const { worker } = staged({ test_job: () => {} }, { signals: false })
  const before = process.listenerCount('SIGTERM')
  await Promise.all([worker.start(), worker.start()])
  assert.equal(process.listenerCount('SIGTERM'), before)
  assert.equal(lines.filter((line) => line === 'Worker starting').length, 1)
  await worker.shutdown()
  await assert.rejects(worker.start(), { code: 'ERR_CLOSED' })
  await staged({ test_job: () => {} }).worker.shutdown('TEST')
})

test('a handler that is no function, and options that contradict each other, are refused', () => {
  assert.throws(() => new JobWorker({ db, handlers: {} }), { code: 'ERR_OPTION_INVALID' })
  const wrong: Record<string, () => void> = Object.fromEntries([['a', JSON.parse('1')]])
  assert.throws(() => new JobWorker({ db, handlers: wrong }), /the handler of 'a' is no function/)
  assert.throws(() => new JobWorker({ db }), /give 'engine' instead of 'db', or 'handlers'/)
  assert.throws(() => new JobWorker({ db, engine: 'sqlite:x', handlers: { a: () => {} } }), /give one of them/)
})

// B188 X112
test('without handlers it runs the pipeline on the file of the environment, and closes it', async (t) => {
  const file = files.next()
  const config = `${file}.json`
  writeFileSync(config, '{}')
  t.mock.property(process, 'env', {
    ...process.env,
    MILLRACE_ENGINE: `sqlite:${file}`,
    MILLRACE_CONVERSATIONS_CONFIG: config,
  })
  const mill = await open(`sqlite:${file}`)
  const own = new DatabaseSync(file, { timeout: 5_000 })
  runMigrations(own)
  const conversation = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
  hookHandler(
    { event: 'UserPromptSubmit', conversation_id: conversation, content: 'Mail john@example.com when it works.' },
    { database: own, sanitize: createSanitizer() },
  )
  const repository = new JobQueueRepository(own)
  const [job] = repository.findByType('sanitize_ai_validation')
  const worker = new JobWorker({ pollInterval: 20 })
  await worker.start()
  await mill.result(job?.id ?? '')
  const [learning] = repository.findByType('extract_learning')
  await mill.result(learning?.id ?? '')
  await worker.shutdown('TEST')
  assert.deepEqual(
    repository.findByStatus('completed').map(({ type }) => type),
    ['extract_learning', 'sanitize_ai_validation'],
  )
  own.close()
  await mill.close()
})
