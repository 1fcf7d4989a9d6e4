import assert from 'node:assert/strict'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { createRequire } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { open } from '../../../src/client/mill.ts'
import { Connection, type SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import { MIGRATIONS } from '../../../src/engines/sqlite/migrations.ts'
import { defineJob } from '../../../src/job/definition.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { runMigrations } from '../store/database.ts'
import { JobQueueRepository } from './job-queue-repository.ts'

const files = tempFiles()
let file: string
beforeEach(() => {
  file = files.next()
})

const greet = defineJob({ type: 'greet', run: () => 'hello' })

// X079
test('a mill on the same file sees the same: keys, results, fences and dependants', async () => {
  const clock = new TestClock()
  const db = new DatabaseSync(file)
  const queue = new JobQueueRepository(db, { clock, worker: 'w' })
  const mill = await open(`sqlite:${file}`, { clock, jobs: [greet] })
  const first = await mill.enqueue(greet, null, { key: 'k' })
  const second = await mill.enqueue(greet, null, { after: first.id })
  assert.equal(queue.enqueueJob('greet', null, 'k').enqueued, false)
  const claimed = queue.dequeue()
  assert.equal(claimed?.id, first.id)
  assert.equal(queue.dequeue(), null, 'the second waits for the first')
  assert.equal((await mill.job(first.id))?.leaseOwner, 'w')
  queue.markCompleted(first.id, 'done')
  assert.equal(queue.dequeue()?.id, second.id)
  queue.markCompleted(second.id, { n: 1 })
  assert.deepEqual(await mill.result(second.id), { n: 1 })
  assert.equal(queue.enqueueJob('greet', null, 'k').enqueued, true)

  const third = queue.dequeue()
  await mill.cancel(third?.id ?? '')
  assert.equal(queue.markCompleted(third?.id ?? ''), false, 'a cancelled job stays cancelled')
  assert.deepEqual([queue.findById(third?.id ?? '')?.status, queue.getDeadLetterJobs()], ['cancelled', []])
  assert.equal(queue.findByStatus('cancelled').length, 1)
  await mill.close()
  db.close()
})

test('removeOnComplete holds for a job that the repository completes', async () => {
  const clock = new TestClock()
  const db = new DatabaseSync(file)
  const queue = new JobQueueRepository(db, { clock })
  const mill = await open(`sqlite:${file}`, { clock, jobs: [greet] })
  const { id } = await mill.enqueue(greet, null, { removeOnComplete: true })
  queue.dequeue()
  assert.equal(queue.markCompleted(id), true)
  assert.equal(queue.findById(id), null)
  await mill.close()
  db.close()
})

const BetterSqlite: new (path: string) => SqliteDatabase = createRequire(import.meta.url)('better-sqlite3')
for (const [name, openHandle] of [
  ['node:sqlite', (path: string): SqliteDatabase => new DatabaseSync(path)],
  ['better-sqlite3', (path: string): SqliteDatabase => new BetterSqlite(path)],
] as const) {
  test(`a call joins the transaction that is open on the handle (${name})`, () => {
    const db = openHandle(file)
    const queue = new JobQueueRepository(db)
    db.exec('BEGIN')
    const { id } = queue.create({ type: 'greet', payload: {} })
    assert.throws(() => queue.create({ type: 'greet', payload: {}, idempotency_key: '' }))
    assert.equal(queue.findById(id)?.status, 'queued')
    db.exec('ROLLBACK')
    assert.equal(queue.findById(id), null)

    db.exec('BEGIN')
    queue.create({ type: 'greet', payload: {} })
    db.exec('COMMIT')
    assert.deepEqual(queue.dequeue()?.payload, {})
    db.close()
  })
}

test('a call waits for the write lock of another process, and leaves the busy timeout of the handle as it was', async () => {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL')
  const queue = new JobQueueRepository(db)
  const holder = new Worker(
    `const { workerData, parentPort } = require('node:worker_threads')
    const other = new (require('node:sqlite').DatabaseSync)(workerData)
    other.exec('BEGIN IMMEDIATE')
    parentPort.postMessage('locked')
    setTimeout(() => { other.exec('COMMIT'); other.close() }, 100)`,
    { eval: true, workerData: file },
  )
  await once(holder, 'message')
  assert.equal(queue.enqueueJob('greet', null).enqueued, true)
  assert.deepEqual({ ...db.prepare('PRAGMA busy_timeout').get() }, { timeout: 0 })
  await once(holder, 'exit')
  db.close()
})

// B42
test('a file of an older version is updated when the repository opens it, and its jobs are found', () => {
  const db = new DatabaseSync(file)
  const old = new Connection(db)
  db.exec('CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)')
  const then = toIso(0)
  for (const { version, name, statements } of MIGRATIONS.filter(({ version }) => version <= 3)) {
    for (const sql of statements(old)) db.exec(sql)
    db.prepare('INSERT INTO millrace_schema VALUES (?, ?, ?)').run(version, name, then)
  }
  db.prepare(
    `INSERT INTO job_queue (id, type, payload, scheduled_at, created_at, updated_at) VALUES ('1', 'greet', '{"a":1}', ?, ?, ?)`,
  ).run(then, then, then)
  const queue = new JobQueueRepository(db)
  assert.deepEqual(
    queue.findByType('greet').map(({ id, payload }) => [id, payload]),
    [['1', { a: 1 }]],
  )
  assert.equal(queue.dequeue()?.id, '1')
  db.close()
})

test('after the clock was set back, a due job is still due', () => {
  const clock = new TestClock()
  const db = new DatabaseSync(file)
  const queue = new JobQueueRepository(db, { clock })
  const { id } = queue.create({ type: 'greet', payload: {} })
  clock.step(-3_600_000)
  assert.equal(queue.dequeue()?.id, id)
  db.close()
})

test('a file that was deleted is not written to', () => {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL')
  runMigrations(db)
  const queue = new JobQueueRepository(db)
  renameSync(file, `${file}.old`)
  assert.throws(() => queue.create({ type: 'greet', payload: {} }), { code: 'ERR_STORAGE_REPLACED' })
  db.close()
})
