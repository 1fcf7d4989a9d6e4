import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import type { Engine } from '../../../src/engine/engine.ts'
import { openEngine } from '../../../src/engine/open.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { JobQueueRepository } from './job-queue-repository.ts'
import { CLEANUP_EVERY_MS, Maintenance, RELEASE_EVERY_MS, RETENTION_DAYS, STALE_LEASE_MS } from './maintenance.ts'

let clock: TestClock
let engine: Engine
let queue: JobQueueRepository
let maintenance: Maintenance
let lines: [level: string, text: string, fields: unknown][]

beforeEach(async () => {
  clock = new TestClock()
  lines = []
  const write = (level: string) => (text: string, fields?: unknown) => void lines.push([level, text, fields])
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  engine = await openEngine('sqlite::memory:', { clock, migrate: true })
  queue = new JobQueueRepository(engine, { types: ['greet'], worker: 'host:1:test', clock, random: () => 0 })
  maintenance = new Maintenance(engine, { worker: 'host:1:keeper', clock, log, random: () => 0 })
})
afterEach(() => engine.close())

async function finished(how: 'completed' | 'failed'): Promise<string> {
  const { id } = await queue.create({ type: 'greet', payload: {}, maxRetries: 1 })
  await queue.dequeue()
  if (how === 'completed') await queue.markCompleted(id)
  else await queue.markFailed(id, new Error('x'))
  return id
}

async function passing<Value>(work: Promise<Value>): Promise<Value> {
  let done = false
  void work.finally(() => {
    done = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  while (!done) await clock.advance(1)
  return work
}

// B167
test('cleanupCompletedJobs removes a job of eight days, keeps one of six and dead letters, and logs the count', async () => {
  const eight = await finished('completed')
  const dead = await finished('failed')
  await clock.advance('2d')
  const six = await finished('completed')
  await clock.advance('6d')
  assert.equal(await passing(maintenance.cleanupCompletedJobs()), 1)
  const found = await Promise.all([eight, six, dead].map(async (id) => (await queue.findById(id))?.state))
  assert.deepEqual(found, [undefined, 'completed', 'dead_letter'])
  assert.deepEqual(lines, [['info', 'Completed jobs cleaned up', { count: 1, retention_days: 7 }]])
})

// B167
test('cleanupCompletedJobs takes the days that it is given, and refuses what are none', async () => {
  await finished('completed')
  await clock.advance('2d')
  assert.equal(await passing(maintenance.cleanupCompletedJobs(3)), 0)
  assert.equal(await passing(maintenance.cleanupCompletedJobs(1)), 1)
  for (const days of [-1, Number.NaN, 1e9]) {
    await assert.rejects(maintenance.cleanupCompletedJobs(days), { name: 'OptionError' })
  }
})

// B168 X081
test('releaseStaleLeases waits five minutes beyond the lease by default', async () => {
  const { id } = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  await clock.advance(60_000 + STALE_LEASE_MS)
  assert.equal(await maintenance.releaseStaleLeases(), 0, 'not a moment before')
  assert.deepEqual(lines, [])
  await clock.advance(1)
  assert.equal(await maintenance.releaseStaleLeases(), 1)
  assert.equal((await queue.findById(id))?.state, 'queued')
  assert.deepEqual(lines, [['warn', 'Stale leases released', { count: 1, timeout_ms: 300_000 }]])
})

// B168
test('releaseStaleLeases with a timeout of 0 takes what has run out, and leaves what is held', async () => {
  const first = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  await clock.advance(60_001)
  const second = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  assert.equal(await maintenance.releaseStaleLeases(0), 1)
  assert.equal((await queue.findById(first.id))?.state, 'queued')
  assert.equal((await queue.findById(second.id))?.state, 'in_progress')
  await assert.rejects(maintenance.releaseStaleLeases(-1), { name: 'OptionError' })
})

test('of two leases that ran out, only the stale one is taken', async () => {
  const stale = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  await clock.advance('4m')
  const fresh = await queue.create({ type: 'greet', payload: {} })
  await queue.dequeue()
  await clock.advance('3m')
  assert.equal(await maintenance.releaseStaleLeases(), 1)
  assert.equal((await queue.findById(stale.id))?.state, 'queued')
  assert.equal((await queue.findById(fresh.id))?.state, 'in_progress')
})

// B167 B168
test('the defaults are those of the pipeline', () => {
  assert.deepEqual(
    [RETENTION_DAYS, CLEANUP_EVERY_MS, STALE_LEASE_MS, RELEASE_EVERY_MS],
    [7, 86_400_000, 300_000, 30_000],
  )
})
