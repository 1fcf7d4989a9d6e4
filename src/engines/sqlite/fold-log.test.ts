import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import type { Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { Connection } from './database.ts'
import { foldLongLog, shareLog, WAL_PAGES } from './fold-log.ts'
import { Writer } from './writer.ts'

const SETTINGS = { clock: systemClock, migrate: true }
/** Far above what closing takes, and far below what a reader may take. */
const CLOSE_MS_MAX = 2_000

const files = tempFiles()
let file: string
let engine: Engine
/** Who has the file open when the engine closes, so that SQLite does not fold the log back by itself. */
let other: DatabaseSync
beforeEach(async () => {
  file = files.next()
  engine = await openEngine(`sqlite:${file}`, SETTINGS)
  other = new DatabaseSync(file)
  // The tables are in the file itself, and the other one has read it.
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
})
afterEach(() => other.close())

/** How many jobs the file has without its log. By another program: closing the file in this process would drop its locks. */
function jobsWithoutLog(): number {
  const copy = files.next()
  execFileSync('cp', [file, copy])
  const database = new DatabaseSync(copy)
  try {
    return Number(database.prepare('SELECT count(*) AS jobs FROM job_queue').get()?.jobs)
  } finally {
    database.close()
  }
}

describe('closing folds the log back', () => {
  // Two that close at the same moment each find the other one there, and SQLite folds the log back for neither.
  test('while others have the file open', async () => {
    await engine.enqueue([newJob()])
    await engine.close()
    assert.equal(jobsWithoutLog(), 1)
  })

  test('as soon as a reader lets it', async () => {
    other.exec('BEGIN')
    other.prepare('SELECT count(*) FROM job_queue').get()
    await engine.enqueue([newJob()])
    const closed = engine.close()
    await systemClock.sleep(5)
    other.exec('COMMIT')
    await closed
    assert.equal(jobsWithoutLog(), 1)
  })

  test('or leaves it to the next process if the reader stays', async () => {
    other.exec('BEGIN')
    other.prepare('SELECT count(*) FROM job_queue').get()
    await engine.enqueue([newJob()])
    const startedMs = systemClock.monotonicMs()
    await engine.close()
    assert.ok(systemClock.monotonicMs() - startedMs < CLOSE_MS_MAX)
    other.exec('COMMIT')
    assert.equal(other.prepare('SELECT count(*) AS jobs FROM job_queue').get()?.jobs, 1)
  })

  test('only if it wrote something', async () => {
    await engine.enqueue([newJob()])
    const reader = await openEngine(`sqlite:${file}`, SETTINGS)
    await reader.counts()
    await reader.close()
    assert.equal(jobsWithoutLog(), 0)
    await engine.close()
  })
})

describe('in a file that processes share', () => {
  const logOf = (database: DatabaseSync) => database.prepare('PRAGMA wal_checkpoint(NOOP)').get()
  const fill = (database: DatabaseSync): void => {
    database.exec('CREATE TABLE filled (x)')
    const insert = database.prepare('INSERT INTO filled VALUES (zeroblob(8000))')
    while (Number(logOf(database)?.log) < WAL_PAGES) insert.run()
  }

  test('a long log is folded back whole, and not before it is asked for', () => {
    shareLog(new Connection(other))
    fill(other)
    assert.equal(logOf(other)?.checkpointed, 0)
    foldLongLog(new Connection(other))
    assert.equal(logOf(other)?.checkpointed, logOf(other)?.log)
  })

  test('a short log, and one that another process writes to, are left for later', () => {
    const connection = new Connection(other)
    shareLog(connection)
    other.exec('CREATE TABLE few (x)')
    foldLongLog(connection)
    assert.equal(logOf(other)?.checkpointed, 0)
    fill(other)
    const writing = new DatabaseSync(file)
    writing.exec('PRAGMA wal_autocheckpoint = 0; BEGIN IMMEDIATE; INSERT INTO few VALUES (1)')
    foldLongLog(connection)
    writing.exec('COMMIT')
    assert.ok(Number(logOf(other)?.checkpointed) < Number(logOf(other)?.log))
    writing.close()
  })

  test('a writer that has met the lock of another leaves the log to that', async () => {
    const connection = new Connection(new DatabaseSync(file, { timeout: 0 }))
    const tried = Promise.withResolvers<void>()
    const random = (): number => {
      tried.resolve()
      return 0
    }
    const writer = new Writer(connection, { sync: null, random })
    other.exec('BEGIN IMMEDIATE')
    const written = writer.run('enqueue', () => {})
    await tried.promise
    other.exec('COMMIT')
    await written
    const read = connection.prepare('PRAGMA wal_autocheckpoint').get()
    assert.deepEqual({ ...(read as object) }, { wal_autocheckpoint: 2 * WAL_PAGES })
    connection.close()
  })
})
