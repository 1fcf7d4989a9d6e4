import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, test } from 'node:test'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { JobQueueRepository } from './job-queue-repository.ts'
import {
  CLEANUP_EVERY_MS,
  cleanupCompletedJobs,
  type MaintenanceOptions,
  RELEASE_EVERY_MS,
  RETENTION_DAYS,
  releaseStaleLeases,
  STALE_LEASE_MS,
} from './maintenance.ts'

let clock: TestClock
let db: DatabaseSync
let queue: JobQueueRepository
let options: MaintenanceOptions
let lines: [level: string, text: string, fields: unknown][]

beforeEach(() => {
  clock = new TestClock()
  lines = []
  const write = (level: string) => (text: string, fields?: unknown) => void lines.push([level, text, fields])
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  db = new DatabaseSync(':memory:')
  queue = new JobQueueRepository(db, { clock, random: () => 0 })
  options = { clock, log, random: () => 0 }
})
afterEach(() => db.close())

function finished(how: 'completed' | 'failed'): string {
  const { id } = queue.create({ type: 'greet', payload: {}, max_retries: 1 })
  queue.dequeue()
  if (how === 'completed') queue.markCompleted(id)
  else queue.markFailed(id, new Error('x'))
  return id
}

// B167
test('cleanupCompletedJobs removes a job of eight days, keeps one of six and dead letters, and logs the count', async () => {
  const eight = finished('completed')
  const dead = finished('failed')
  await clock.advance('2d')
  const six = finished('completed')
  await clock.advance('6d')
  assert.equal(cleanupCompletedJobs(db, undefined, options), 1)
  const found = [eight, six, dead].map((id) => queue.findById(id)?.status)
  assert.deepEqual(found, [undefined, 'completed', 'dead_letter'])
  assert.deepEqual(lines, [['info', 'Completed jobs cleaned up', { count: 1, retention_days: 7 }]])
})

// B167
test('cleanupCompletedJobs takes the days that it is given, and refuses what are none', async () => {
  finished('completed')
  await clock.advance('2d')
  assert.equal(cleanupCompletedJobs(db, 3, options), 0)
  assert.equal(cleanupCompletedJobs(db, 1, options), 1)
  for (const days of [-1, Number.NaN, 1e9]) {
    assert.throws(() => cleanupCompletedJobs(db, days), { name: 'OptionError' })
  }
})

// B168 X081
test('releaseStaleLeases waits five minutes beyond the lease by default', async () => {
  const { id } = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  await clock.advance(60_000 + STALE_LEASE_MS)
  assert.equal(releaseStaleLeases(db, undefined, options), 0, 'not a moment before')
  assert.deepEqual(lines, [])
  await clock.advance(1)
  assert.equal(releaseStaleLeases(db, undefined, options), 1)
  assert.equal(queue.findById(id)?.status, 'queued')
  assert.deepEqual(lines.at(-1), ['warn', 'Stale leases released', { count: 1, timeout_ms: 300_000 }])
})

// B168
test('releaseStaleLeases with a timeout of 0 takes what has run out, and leaves what is held', async () => {
  const first = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  await clock.advance(60_001)
  const second = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  assert.equal(releaseStaleLeases(db, 0, options), 1)
  assert.equal(queue.findById(first.id)?.status, 'queued')
  assert.equal(queue.findById(second.id)?.status, 'in_progress')
  assert.throws(() => releaseStaleLeases(db, -1), { name: 'OptionError' })
})

test('of two leases that ran out, only the stale one is taken', async () => {
  const stale = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  await clock.advance('4m')
  const fresh = queue.create({ type: 'greet', payload: {} })
  queue.dequeue()
  await clock.advance('3m')
  assert.equal(releaseStaleLeases(db, undefined, options), 1)
  assert.equal(queue.findById(stale.id)?.status, 'queued')
  assert.equal(queue.findById(fresh.id)?.status, 'in_progress')
})

test("a repository's own backoff also counts for a job whose lease ran out", async () => {
  const own = new JobQueueRepository(db, { clock, backoff: { kind: 'fixed', delay: '5s' } })
  const { id } = own.create({ type: 'greet', payload: {} })
  own.dequeue()
  await clock.advance('61s')
  assert.equal(own.releaseExpiredLeases(), 1)
  assert.equal(own.findById(id)?.scheduled_at, toIso(clock.nowMs() + 5_000))
})

// B167 B168
test('the defaults are those of the pipeline', () => {
  assert.deepEqual(
    [RETENTION_DAYS, CLEANUP_EVERY_MS, STALE_LEASE_MS, RELEASE_EVERY_MS],
    [7, 86_400_000, 300_000, 30_000],
  )
})
