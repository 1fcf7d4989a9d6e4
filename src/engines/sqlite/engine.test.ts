import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import type { Lease } from '../../engine/outcome.ts'
import { newJobId } from '../../job/id.ts'
import type { NewJob } from '../../job/job.ts'
import { systemClock } from '../../time/clock.ts'
import { forbidSchemaChanges, openFile, type SqliteDatabase } from './database.ts'

/** The package brings no types; it is used as what the engine asks for. */
const BetterSqlite: new (path: string) => SqliteDatabase = createRequire(import.meta.url)('better-sqlite3')

const SETTINGS = { clock: systemClock, migrate: true }
const NEVER = new AbortController().signal

let folder: string
let file: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))
let count = 0
beforeEach(() => {
  count += 1
  file = join(folder, `${count}.db`)
})

function job(extra: Partial<NewJob> = {}): NewJob {
  return {
    id: newJobId(systemClock.nowMs()),
    type: 'greet',
    payload: '{"name":"Ada"}',
    payloadVersion: 1,
    priority: 5,
    attempts: 3,
    delayMs: 0,
    runAtMs: null,
    key: null,
    latest: null,
    tenant: null,
    options: null,
    ...extra,
  }
}

async function claim(engine: Engine, max = 1): Promise<readonly Lease[]> {
  const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'host:1:test' })
  return consumer.claim({ max, waitMs: 0, signal: NEVER })
}

describe('opening', () => {
  // B13
  test('runs in WAL mode with synchronous FULL unless told otherwise', async () => {
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

  test('refuses a folder that does not exist', async () => {
    await assert.rejects(openEngine(`sqlite:${join(folder, 'missing', 'a.db')}`, SETTINGS), {
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
    chmodSync(folder, 0o555)
    // The tests may run as root, for whom nothing is read-only: the child steps down to nobody.
    const script = `
      if (process.getuid() === 0) { process.setgid(65534); process.setuid(65534) }
      const { openEngine } = await import(${JSON.stringify(new URL('../../engine/open.ts', import.meta.url).href)})
      const { systemClock } = await import(${JSON.stringify(new URL('../../time/clock.ts', import.meta.url).href)})
      const engine = await openEngine('sqlite:${file}', { clock: systemClock, migrate: true }).catch((error) => { console.log(error.code) })
      if (engine) await engine.enqueue([]).then(() => console.log('opened'))`
    const scriptFile = join(tmpdir(), `millrace-readonly-${process.pid}.mts`)
    writeFileSync(scriptFile, script)
    const root = spawnSync(process.execPath, [scriptFile], { encoding: 'utf8' })
    chmodSync(folder, 0o755)
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

describe('storing', () => {
  // B17 B25 B26 B34 B93
  test('writes every time as ISO-8601 UTC and the lease as its owner and end', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    await engine.enqueue([job()])
    const [lease] = await claim(engine)
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
    await engine.enqueue([job()])
    const { page_count } = handle.prepare('PRAGMA page_count').get() as { page_count: number }
    handle.exec(`PRAGMA max_page_count = ${page_count + 2}`)
    const many = Array.from({ length: 500 }, () => job({ payload: JSON.stringify('x'.repeat(2_000)) }))
    await assert.rejects(engine.enqueue(many), { code: 'ERR_STORAGE_FULL' })
    handle.exec('PRAGMA max_page_count = 1000000')
    assert.deepEqual(await engine.counts(), { greet: { ready: 1, delayed: 0, inProgress: 0, completed: 0, dead: 0 } })
    await engine.enqueue([job()])
    assert.equal((await engine.counts()).greet?.ready, 2)
    await engine.close()
    handle.close()
  })

  // X121
  test('waits for a lock held by another connection without blocking the event loop', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    const enqueued = engine.enqueue([job()])
    let turns = 0
    for (const untilMs = systemClock.monotonicMs() + 100; systemClock.monotonicMs() < untilMs; turns += 1)
      await systemClock.sleep(1)
    assert.ok(turns > 20, `the loop turned only ${turns} times in 100 ms`)
    other.exec('COMMIT')
    assert.equal((await enqueued)[0]?.status, 'enqueued')
    other.close()
    await engine.close()
  })

  test('calls of one turn share a transaction, and one that fails fails alone', async () => {
    const handle = new DatabaseSync(file)
    const engine = await openEngine(handle, SETTINGS)
    const answers = await Promise.allSettled([
      engine.enqueue([job()]),
      engine.enqueue([job(), job({ priority: 99 })]),
      engine.enqueue([job()]),
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
      await engine.enqueue([${JSON.stringify(job())}])
      process.kill(process.pid, 'SIGKILL')`
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    assert.equal(child.signal, 'SIGKILL', child.stderr)
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    assert.equal((await engine.counts()).greet?.ready, 1)
    await engine.close()
  })
})

describe('a transaction of the user’s own', () => {
  const libraries: [name: string, open: (path: string) => SqliteDatabase][] = [
    ['node:sqlite', (path) => new DatabaseSync(path)],
    ['better-sqlite3', (path) => new BetterSqlite(path)],
  ]
  for (const [name, open] of libraries) {
    // B12
    test(`commits the job with the user's rows, or not at all (${name})`, async () => {
      const engine = await openEngine(`sqlite:${file}`, SETTINGS)
      const mine = open(file)
      mine.exec('CREATE TABLE invoices (id TEXT)')
      mine.exec(`BEGIN; INSERT INTO invoices VALUES ('1')`)
      await engine.enqueue([job({ key: 'one' }), ...Array.from({ length: 60 }, () => job())], mine)
      assert.deepEqual(await engine.counts(), {})
      mine.exec('ROLLBACK')
      assert.deepEqual(await engine.counts(), {})
      mine.exec(`BEGIN; INSERT INTO invoices VALUES ('2')`)
      await engine.enqueue([job({ key: 'one' })], mine)
      mine.exec('COMMIT')
      assert.equal((await engine.counts()).greet?.ready, 1)
      mine.close()
      await engine.close()
    })

    test(`works on a handle of ${name}`, async () => {
      const handle = open(file)
      const engine = await openEngine(handle, SETTINGS)
      await engine.enqueue([job({ key: 'k' }), ...Array.from({ length: 60 }, () => job())])
      assert.equal((await engine.enqueue([job({ key: 'k' })]))[0]?.status, 'duplicate')
      const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
      const leases = await consumer.claim({ max: 100, waitMs: 0, signal: NEVER })
      assert.equal(leases.length, 61)
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
    await assert.rejects(engine.enqueue([job()], mine), /run BEGIN on it first/)
    const other = new DatabaseSync(':memory:')
    other.exec('BEGIN')
    await assert.rejects(engine.enqueue([job()], other), /another database file/)
    await assert.rejects(engine.enqueue([job()], {}), /must be a database handle/)
    mine.close()
    other.close()
    await engine.close()
  })
})

describe('rows of other programs', () => {
  const insert = (handle: DatabaseSync, id: string, columns: Record<string, string | number> = {}): void => {
    const now = new Date(systemClock.nowMs() - 1_000).toISOString()
    const row = { id, type: 'greet', scheduled_at: now, payload: '{}', created_at: now, updated_at: now, ...columns }
    const names = Object.keys(row)
    handle
      .prepare(`INSERT INTO job_queue (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`)
      .run(...Object.values(row))
  }

  test('a plain INSERT is claimed, also in the formats of other languages', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    insert(handle, 'iso')
    insert(handle, 'sqlite-text', { scheduled_at: '2025-12-31 23:59:59' })
    insert(handle, 'python', { scheduled_at: '2025-12-31T23:59:59.123456+00:00' })
    const leases = await claim(engine, 10)
    assert.deepEqual(leases.map((lease) => lease.job.id).sort(), ['iso', 'python', 'sqlite-text'])
    assert.ok(leases.every((lease) => lease.attempt === 1 && lease.job.attempts === 3))
    handle.close()
    await engine.close()
  })

  test('a job put back by hand after its last attempt is dead, not started once more', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    insert(handle, 'used-up', { attempts: 3, max_retries: 3 })
    insert(handle, 'fine')
    assert.deepEqual(
      (await claim(engine, 10)).map((lease) => lease.job.id),
      ['fine'],
    )
    assert.equal((await engine.counts()).greet?.dead, 1)
    handle.close()
    await engine.close()
  })

  test('nonsense in the columns we added is read as absent', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    insert(handle, 'odd', { tenant: '{', options: 'nope', progress: '[', result: '(' })
    const [lease] = await claim(engine)
    assert.deepEqual([lease?.job.tenant, lease?.job.options], [null, null])
    assert.equal((await engine.inspector?.find('odd'))?.progress, null)
    handle.close()
    await engine.close()
  })
})
