import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, test } from 'node:test'
import { claimAll } from '../../../test/fixtures/claim.ts'
import { closeUnderWorker } from '../../../test/fixtures/closed-handle.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { open } from '../../client/mill.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import type { SqliteDatabase } from './database.ts'

/** The package brings no types; it is used as what the engine asks for. */
const BetterSqlite: new (path: string) => SqliteDatabase = createRequire(import.meta.url)('better-sqlite3')

const SETTINGS = { clock: systemClock, migrate: true }

const files = tempFiles()
let file: string
beforeEach(() => {
  file = files.next()
})

const LIBRARIES: readonly (readonly [name: string, openHandle: (path: string) => SqliteDatabase])[] = [
  ['node:sqlite', (path) => new DatabaseSync(path)],
  ['better-sqlite3', (path) => new BetterSqlite(path)],
]

describe('a transaction of the user’s own', () => {
  for (const [name, openHandle] of LIBRARIES) {
    // B12
    test(`commits the job with the user's rows, or not at all (${name})`, async () => {
      const engine = await openEngine(`sqlite:${file}`, SETTINGS)
      const mine = openHandle(file)
      mine.exec('CREATE TABLE invoices (id TEXT)')
      mine.exec(`BEGIN; INSERT INTO invoices VALUES ('1')`)
      await engine.enqueue([newJob({ key: 'one' }), ...Array.from({ length: 60 }, () => newJob())], mine)
      assert.deepEqual(await engine.counts(), {})
      mine.exec('ROLLBACK')
      assert.deepEqual(await engine.counts(), {})
      mine.exec(`BEGIN; INSERT INTO invoices VALUES ('2')`)
      await engine.enqueue([newJob({ key: 'one' })], mine)
      mine.exec('COMMIT')
      assert.equal((await engine.counts()).greet?.ready, 1)
      mine.close()
      await engine.close()
    })

    test(`works on a handle of ${name}`, async () => {
      const handle = openHandle(file)
      const engine = await openEngine(handle, SETTINGS)
      await engine.enqueue([newJob({ key: 'k' }), ...Array.from({ length: 60 }, () => newJob())])
      assert.equal((await engine.enqueue([newJob({ key: 'k' })]))[0]?.status, 'duplicate')
      const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
      const leases = await claimAll(consumer, 61)
      const outcome = { kind: 'complete', result: 'null', durationMs: 1 } as const
      assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome }))), [])
      assert.equal((await engine.counts()).greet?.completed, 61)
      await engine.close()
      handle.close()
    })
  }

  test('is refused without a BEGIN, on another file, or when it is no database', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const mine = new DatabaseSync(file)
    await assert.rejects(engine.enqueue([newJob()], mine), /run BEGIN on it first/)
    const other = new DatabaseSync(':memory:')
    other.exec('BEGIN')
    await assert.rejects(engine.enqueue([newJob()], other), /another database file/)
    await assert.rejects(engine.enqueue([newJob()], {}), /must be a database handle/)
    mine.close()
    other.close()
    await engine.close()
  })
})

describe('a handle of the user’s own that is closed under a worker', () => {
  for (const [name, openHandle] of LIBRARIES) {
    for (const doing of ['waits', 'runs a job'] as const) {
      test(`is told while the worker ${doing}, and nothing is thrown out of a timer (${name})`, async (t) => {
        const handle = openHandle(file)
        const mill = await open(handle)
        t.after(() => mill.close())
        await closeUnderWorker(mill, () => handle.close(), doing)
      })
    }
  }
})
