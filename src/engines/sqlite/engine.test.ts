import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, test } from 'node:test'
import { claimGreetings } from '../../../test/fixtures/claim.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { forbidSchemaChanges, openFile } from './database.ts'
import { parseUrl } from './url.ts'

const SETTINGS = { clock: systemClock, migrate: true }
const NEVER = new AbortController().signal

const files = tempFiles()
let file: string
beforeEach(() => {
  file = files.next()
})

describe('opening', () => {
  // B13
  test('runs in WAL mode with synchronous FULL by default', async () => {
    const handle = new DatabaseSync(file)
    const engine = await openEngine(handle, SETTINGS)
    assert.equal(handle.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal')
    assert.equal(handle.prepare('PRAGMA synchronous').get()?.synchronous, 2)
    await engine.close()
    handle.close()
  })

  test('refuses a malformed URL', async () => {
    for (const url of ['sqlite:', 'sqlite:x.db?synchronous=off', 'sqlite:x.db?sync=full']) {
      await assert.rejects(openEngine(url, SETTINGS), { code: 'ERR_ENGINE_URL' }, url)
    }
  })

  test('a tilde is the home folder, and only at the start', () => {
    const fileOf = (url: string): string => parseUrl(url).database
    assert.equal(fileOf('sqlite:~/a.db'), join(homedir(), 'a.db'))
    for (const other of ['./~/a.db', '~a.db', '/a~/b.db', ':memory:']) assert.equal(fileOf(`sqlite:${other}`), other)
  })

  test('refuses a folder that does not exist', async () => {
    await assert.rejects(openEngine(`sqlite:${join(files.folder, 'missing', 'a.db')}`, SETTINGS), {
      code: 'ERR_STORAGE_OPEN',
    })
  })

  test('refuses a file that is not a database and leaves it as it was', async () => {
    const text = 'these are my notes, do not touch them '.repeat(50)
    writeFileSync(file, text)
    await assert.rejects(openEngine(`sqlite:${file}`, SETTINGS), { code: 'ERR_STORAGE_NOT_A_DATABASE' })
    assert.equal(statSync(file).size, text.length)
  })

  test('refuses a newer schema, and a missing one when it may not migrate', async () => {
    await assert.rejects(openEngine(`sqlite:${file}`, { ...SETTINGS, migrate: false }), { code: 'ERR_SCHEMA_MISSING' })
    await (await openEngine(`sqlite:${file}`, SETTINGS)).close()
    const handle = new DatabaseSync(file)
    handle.exec(`INSERT INTO millrace_schema VALUES (999, 'later', '')`)
    handle.close()
    await assert.rejects(openEngine(`sqlite:${file}`, SETTINGS), { code: 'ERR_SCHEMA_NEWER' })
  })

  test('says which user may not write when the file or its folder is read-only', async () => {
    await (await openEngine(`sqlite:${file}`, SETTINGS)).close()
    chmodSync(file, 0o444)
    chmodSync(files.folder, 0o555)
    // The tests may run as root, for whom nothing is read-only: the child steps down to nobody, when an engine has been
    // opened, because nobody may not be able to read the modules.
    const script = `
      const { openEngine } = await import(${JSON.stringify(new URL('../../engine/open.ts', import.meta.url).href)})
      const { systemClock } = await import(${JSON.stringify(new URL('../../time/clock.ts', import.meta.url).href)})
      await (await openEngine('sqlite::memory:', { clock: systemClock, migrate: true })).close()
      if (process.getuid() === 0) { process.setgid(65534); process.setuid(65534) }
      const engine = await openEngine('sqlite:${file}', { clock: systemClock, migrate: true }).catch((error) => { console.log(error.code) })
      if (engine) await engine.enqueue([]).then(() => console.log('opened'))`
    const scriptFile = join(tmpdir(), `millrace-readonly-${process.pid}.mts`)
    writeFileSync(scriptFile, script)
    const root = spawnSync(process.execPath, [scriptFile], { encoding: 'utf8' })
    chmodSync(files.folder, 0o755)
    rmSync(scriptFile)
    assert.match(root.stdout, /ERR_STORAGE_(READONLY|OPEN)/, root.stderr)
  })

  // B194 X103
  test('leaves a worker no way to change the schema', async () => {
    await (await openEngine(`sqlite:${file}`, SETTINGS)).close()
    const handle = openFile(file)
    forbidSchemaChanges(handle)
    for (const sql of [
      'DROP TABLE job_queue',
      'CREATE TABLE x (y)',
      'ALTER TABLE job_queue ADD COLUMN z',
      `ATTACH ':memory:' AS other`,
    ]) {
      assert.throws(() => handle.exec(sql), /not authorized/, sql)
    }
    handle.exec(`DELETE FROM job_queue`)
    handle.close()
  })
})

describe('closing', () => {
  test('ends the wait for a job that has not finished, and leaves no timer that reads the closed file', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const job = newJob()
    await engine.enqueue([job])
    const waiting = engine.inspector?.waitFor(job.id, { waitMs: 60_000, signal: NEVER })
    const ended = assert.rejects(async () => waiting, { code: 'ERR_CLOSED' })
    await new Promise((resolve) => setImmediate(resolve))
    await engine.close()
    await ended
    // A timer left behind would throw here, where nobody could catch it, and take the process down.
    await systemClock.sleep(50)
  })
})

describe('storing', () => {
  // B17 B25 B26 B34 B93
  test('writes every time as ISO-8601 UTC and the lease as its owner and end', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    await engine.enqueue([newJob()])
    const [lease] = await claimGreetings(engine)
    assert.ok(lease)
    const handle = new DatabaseSync(file)
    const row = handle.prepare('SELECT * FROM job_queue').get() ?? {}
    for (const column of ['scheduled_at', 'lease_until', 'created_at', 'updated_at', 'started_at']) {
      assert.match(String(row[column]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, column)
    }
    assert.equal(row.lease_owner, 'host:1:test')
    assert.equal(Date.parse(String(row.lease_until)) - Date.parse(String(row.started_at)), 60_000)
    assert.equal(row.attempts, 1)
    handle.close()
    await engine.close()
  })

  test('a full disk is said, and loses nothing that was acknowledged', async () => {
    const handle = new DatabaseSync(file)
    const engine = await openEngine(handle, SETTINGS)
    await engine.enqueue([newJob()])
    const { page_count } = handle.prepare('PRAGMA page_count').get() as { page_count: number }
    handle.exec(`PRAGMA max_page_count = ${page_count + 2}`)
    const many = Array.from({ length: 500 }, () => newJob({ payload: JSON.stringify('x'.repeat(2_000)) }))
    await assert.rejects(engine.enqueue(many), { code: 'ERR_STORAGE_FULL' })
    handle.exec('PRAGMA max_page_count = 1000000')
    assert.deepEqual(await engine.counts(), { greet: { ready: 1, delayed: 0, inProgress: 0, completed: 0, dead: 0 } })
    await engine.enqueue([newJob()])
    assert.equal((await engine.counts()).greet?.ready, 2)
    await engine.close()
    handle.close()
  })

  // X121
  test('waits for a lock held by another connection without blocking the event loop', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    const enqueued = engine.enqueue([newJob()])
    const turnsMs: number[] = []
    for (let turns = 0; turns < 50; turns += 1) {
      const startedAtMs = systemClock.monotonicMs()
      await systemClock.sleep(1)
      turnsMs.push(systemClock.monotonicMs() - startedAtMs)
    }
    // One wait inside SQLite would hold the loop for as long as the lock is held, or for its 5 s.
    assert.ok(Math.max(...turnsMs) < 4_500, `a turn of the loop took ${Math.max(...turnsMs)} ms`)
    other.exec('COMMIT')
    assert.equal((await enqueued)[0]?.status, 'enqueued')
    other.close()
    await engine.close()
  })

  test('calls of one turn share a transaction, and one that fails fails alone', async () => {
    const handle = new DatabaseSync(file)
    const engine = await openEngine(handle, SETTINGS)
    const answers = await Promise.allSettled([
      engine.enqueue([newJob()]),
      engine.enqueue([newJob(), newJob({ priority: 99 })]),
      engine.enqueue([newJob()]),
    ])
    assert.deepEqual(
      answers.map((answer) => answer.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.equal((await engine.counts()).greet?.ready, 2)
    await engine.close()
    handle.close()
  })

  // B02 A12
  test('keeps acknowledged jobs when the process ends without closing', async () => {
    const script = `
      const { openEngine } = await import(${JSON.stringify(new URL('../../engine/open.ts', import.meta.url).href)})
      const { systemClock } = await import(${JSON.stringify(new URL('../../time/clock.ts', import.meta.url).href)})
      const engine = await openEngine('sqlite:${file}', { clock: systemClock, migrate: true })
      await engine.enqueue([${JSON.stringify(newJob())}])
      process.kill(process.pid, 'SIGKILL')`
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    assert.equal(child.signal, 'SIGKILL', child.stderr)
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    assert.equal((await engine.counts()).greet?.ready, 1)
    await engine.close()
  })

  test('a job given back is not handed out again before its holder was answered', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    await engine.enqueue([newJob({ attempts: 1_000 })])
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    const error = { name: 'Error', code: null, message: 'again', stack: null }
    for (let round = 1; round < 20; round += 1) {
      const [lease] = await consumer.claim({ max: 1, waitMs: 30_000, signal: NEVER })
      assert.ok(lease)
      const order: string[] = []
      const outcome =
        round % 2 === 0
          ? ({ kind: 'retry', delayMs: 0, error } as const)
          : ({ kind: 'release', delayMs: 0, reason: 'r' } as const)
      const settled = consumer.settle([{ lease, outcome }]).then(() => order.push('settled'))
      // By now it is committed, and on its way to the disk.
      for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve))
      const claiming = consumer.claim({ max: 1, waitMs: 30_000, signal: NEVER })
      const again = await claiming
      order.push('claimed')
      await settled
      assert.deepEqual(order, ['settled', 'claimed'])
      const [next] = again
      if (next === undefined) break
      await consumer.settle([{ lease: next, outcome: { kind: 'release', delayMs: 0, reason: 'r' } }])
    }
    await engine.close()
  })
})
