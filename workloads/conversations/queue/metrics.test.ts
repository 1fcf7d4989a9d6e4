import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, test } from 'node:test'
import { COUNT_DEAD, COUNT_HELD_BACK, COUNT_READY } from '../../../src/engines/sqlite/counts.ts'
import { OLDEST_DUE } from '../../../src/engines/sqlite/inspector.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { runMigrations } from '../store/database.ts'
import { checkAlerts } from './alert-rules.ts'
import { JobQueueRepository } from './job-queue-repository.ts'
import {
  COMPLETED_BY_OTHERS,
  COMPLETED_SINCE,
  COUNT_IN_PROGRESS,
  COUNT_QUEUED,
  collectMetrics,
  DEAD_SINCE,
  FAILED_SINCE,
  type QueueMetrics,
} from './metrics.ts'

const files = tempFiles()
let clock: TestClock
let db: DatabaseSync
let queue: JobQueueRepository
let file: string

beforeEach(() => {
  clock = new TestClock()
  file = files.next()
  db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
  runMigrations(db, { clock })
  queue = new JobQueueRepository(db, { clock, random: () => 0 })
})
afterEach(() => db.close())

const metrics = (windowMs?: number): QueueMetrics => collectMetrics(db, windowMs, { clock })

function end(how: 'completed' | 'dead', type = 'greet'): void {
  const { id } = queue.create({ type, payload: {}, max_retries: 1, priority: 1 })
  assert.equal(queue.dequeue()?.id, id)
  if (how === 'completed') queue.markCompleted(id)
  else queue.markFailed(id, 'no')
}

async function complete(durationMs: number, type = 'greet'): Promise<void> {
  const { id } = queue.create({ type, payload: {}, priority: 1 })
  assert.equal(queue.dequeue()?.id, id)
  await clock.advance(durationMs)
  queue.markCompleted(id)
}

// B142 B143 B144 B147 X086
test('what is stored: queued, due, delayed, in progress and dead, and the age of what is due', async () => {
  assert.partialDeepStrictEqual(metrics(), { queueDepth: 0, queueAgeMs: 0, inProgressCount: 0, deadLetterCount: 0 })
  end('dead')
  queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  queue.create({ type: 'greet', payload: {} })
  await clock.advance('10s')
  const { id } = queue.create({ type: 'greet', payload: {} })
  db.prepare('UPDATE job_queue SET scheduled_at = ? WHERE id = ?').run(toIso(clock.nowMs() + 1_000), id)
  assert.partialDeepStrictEqual(metrics(), {
    queueDepth: 2,
    due: 1,
    delayed: 1,
    queueAgeMs: 10_000,
    inProgressCount: 1,
    deadLetterCount: 1,
    deadByType: { greet: 1 },
  })
})

// B145 B151
test('the rate is in jobs per minute, over an hour by default', async () => {
  for (let index = 0; index < 60; index += 1) end('completed')
  assert.deepEqual([metrics().processingRate, metrics(600_000).processingRate, metrics().windowMs], [1, 6, 3_600_000])
  await clock.advance('30m')
  assert.deepEqual([metrics().processingRate, metrics(600_000).processingRate], [1, 0])
  await clock.advance('31m')
  assert.deepEqual([metrics().processingRate, metrics(86_400_000).completed], [0, 60])
  for (const windowMs of [0, -1, Number.NaN]) assert.throws(() => metrics(windowMs), { code: 'ERR_OPTION_INVALID' })
})

// B146 X083
test('the success rate is of jobs that ended, the failure rate of attempts', () => {
  assert.deepEqual([metrics().successRate, metrics().attemptFailureRate], [1, 0])
  for (let index = 0; index < 19; index += 1) end('completed')
  end('dead')
  assert.deepEqual([metrics().successRate, metrics().processed, metrics().attemptFailureRate], [0.95, 20, 0.05])
  const { id } = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  queue.markFailed(id, 'once')
  assert.deepEqual([metrics().successRate, metrics().attemptFailureRate], [0.95, 2 / 21])
})

// B148 B149 X084
test('latencies are of completed attempts, by nearest rank; a row of another program counts by its times', async () => {
  assert.deepEqual([metrics().latencyP50Ms, metrics().latencyP95Ms, metrics().latencyP99Ms], [0, 0, 0])
  for (let ms = 1; ms < 100; ms += 1) await complete(ms)
  const at = toIso(clock.nowMs())
  const insert = db.prepare(`INSERT INTO job_queue
    (id, type, status, payload, scheduled_at, created_at, updated_at, started_at, completed_at)
    VALUES (?, 'greet', 'completed', '{}', ?, ?, ?, ?, ?)`)
  insert.run('foreign', at, at, at, toIso(clock.nowMs() - 100), at)
  insert.run('without a start', at, at, at, null, at)
  const { latencyP50Ms, latencyP95Ms, latencyP99Ms, completed } = metrics()
  assert.deepEqual([latencyP50Ms, latencyP95Ms, latencyP99Ms, completed], [50, 95, 99, 101])
})

// B150 X085
test('expired leases are counted per minute', async () => {
  for (let index = 0; index < 2; index += 1) queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  queue.dequeue()
  await clock.advance('61s')
  queue.releaseExpiredLeases()
  assert.deepEqual([metrics().leaseExpiryRate, metrics(60_000).leaseExpiryRate], [2 / 60, 2])
  await clock.advance('61m')
  assert.equal(metrics().leaseExpiryRate, 0)
})

// B155 B157 B158 X087 X090
test('checkAlerts takes them as they are, with the latency of each type', async () => {
  await complete(12_000, 'mine_upload')
  await complete(12_000, 'other')
  for (let index = 0; index < 20; index += 1) end(index < 4 ? 'dead' : 'completed')
  assert.deepEqual(
    checkAlerts(metrics()).map(({ severity, metric, value, threshold }) => [severity, metric, value, threshold]),
    [
      ['ERROR', 'success_rate', 18 / 22, 0.95],
      ['WARNING', 'latency_p95', 12_000, 10_000],
    ],
  )
})

// X129
test('the figures are of one moment, while another process commits between the statements', () => {
  const other = new DatabaseSync(file)
  const writer = new JobQueueRepository(other, { clock, random: () => 0 })
  for (let index = 0; index < 30; index += 1) writer.create({ type: 'greet', payload: {}, max_retries: 1 })
  let commits = 0
  const disturb = (): void => {
    const job = writer.dequeue()
    commits += 1
    if (job === null || commits % 3 === 0) return
    if (commits % 3 === 1) writer.markCompleted(job.id)
    else writer.markFailed(job.id, 'no')
  }
  const disturbed = new Proxy(db, {
    get(target, name) {
      if (name === 'prepare')
        return (sql: string) => {
          const statement = target.prepare(sql)
          const answer = (method: 'get' | 'all') => (values: Record<string, string>) => {
            const rows = values === undefined ? statement[method]() : statement[method](values)
            disturb()
            return rows
          }
          return { get: answer('get'), all: answer('all') }
        }
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const first = collectMetrics(disturbed, undefined, { clock })
  const { queueDepth, due, inProgressCount, deadLetterCount, completed, processed } = first
  assert.ok(commits >= 8, `${commits} commits`)
  assert.equal(queueDepth + inProgressCount + deadLetterCount + completed, 30)
  assert.deepEqual([due, processed], [queueDepth, completed + deadLetterCount])
  const then = metrics()
  assert.ok(then.queueDepth <= queueDepth - 7, 'the others committed after the first read')
  other.close()
})

test('no statement walks over the jobs that are stored', () => {
  const values = { now: '', since: '' }
  const statements = { COUNT_QUEUED, COUNT_IN_PROGRESS, COUNT_READY, COUNT_HELD_BACK, COUNT_DEAD, OLDEST_DUE }
  for (const [name, sql] of Object.entries({
    ...statements,
    COMPLETED_SINCE,
    COMPLETED_BY_OTHERS,
    DEAD_SINCE,
    FAILED_SINCE,
  })) {
    const used = Object.fromEntries(Object.entries(values).filter(([value]) => sql.includes(`:${value}`)))
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(used)
    const steps = plan.map(({ detail }) => String(detail))
    assert.ok(
      steps.every(
        (step) =>
          !/^SCAN (job_queue|job_events)(?! USING (COVERING )?INDEX idx_job_queue_(dequeue|dead|lease_expiry|claim|latest))/.test(
            step,
          ),
      ),
      `${name}: ${steps.join('; ')}`,
    )
  }
  assert.match(
    db
      .prepare(`EXPLAIN QUERY PLAN ${COMPLETED_SINCE}`)
      .all({ since: '' })
      .map(({ detail }) => detail)
      .join(),
    /SEARCH job_queue USING COVERING INDEX idx_job_queue_completed \(completed_at>\?\)/,
  )
})
