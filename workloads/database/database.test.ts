import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import type { SqliteDatabase } from '../../src/engines/sqlite/database.ts'
import { defineJob, isMillraceError, open } from '../../src/index.ts'
import { WORKLOAD_PLACES, type WorkloadPlace } from '../../test/fixtures/workload-places.ts'
import { booleanOf, bytesOf, dateOf, jsonOf, maybe, numberOf, textOf } from './columns.ts'
import { openDatabase, type WorkloadDatabase } from './database.ts'
import { migrateSchema, plannedMigrations, type WorkloadSchema } from './schema.ts'

const COLUMNS = {
  sqlite: 'id TEXT PRIMARY KEY, flag INTEGER, n INTEGER, at TEXT, doc TEXT, bytes BLOB',
  postgres: 'id TEXT PRIMARY KEY, flag BOOLEAN, n BIGINT, at TIMESTAMPTZ, doc JSONB, bytes BYTEA',
}
const schema: WorkloadSchema = {
  name: 'things',
  migrations: [
    {
      version: 1,
      sql: {
        sqlite: `CREATE TABLE {things} (${COLUMNS.sqlite}); CREATE INDEX things_n ON {things}(n);`,
        postgres: `CREATE TABLE {things} (${COLUMNS.postgres}); CREATE INDEX things_n ON {things}(n);`,
      },
    },
  ],
}
/** The package brings no types. */
const BetterSqlite: new (path: string) => SqliteDatabase = createRequire(import.meta.url)('better-sqlite3')
const welcome = defineJob({ type: 'welcome' })

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`the tables of a workload on ${name}`, () => {
    let place: WorkloadPlace
    let database: WorkloadDatabase
    before(async () => {
      place = await makePlace()
      database = await openDatabase(place.url, { schemas: [schema], migrate: true })
    })
    after(async () => {
      await database.close()
      await place.remove()
    })

    const insert = (id: string, n = 1) => ({ sql: 'INSERT INTO {things} (id, n) VALUES ($1, $2)', values: [id, n] })
    const ids = async (): Promise<string[]> =>
      (await database.read('SELECT id FROM {things} ORDER BY id')).map((row) => textOf(row, 'id'))

    test('every kind of value is read as it was written', async () => {
      const { json } = database.dialect
      const at = '2026-11-17T08:00:00.123Z'
      await database.write([
        {
          sql: `INSERT INTO {things} (id, flag, n, at, doc, bytes) VALUES ($1, $2, $3, $4, ${json('$5')}, $6)`,
          values: ['values', true, 2 ** 40, at, '{"city":"Bern","n":[1]}', new Uint8Array([0, 255])],
        },
      ])
      const [row] = await database.read('SELECT * FROM {things} WHERE id = $1', ['values'])
      assert.ok(row)
      assert.deepEqual(
        [booleanOf(row, 'flag'), numberOf(row, 'n'), dateOf(row, 'at').toISOString(), textOf(row, 'id')],
        [true, 2 ** 40, at, 'values'],
      )
      assert.deepEqual(jsonOf(row, 'doc'), { city: 'Bern', n: [1] })
      assert.deepEqual([...bytesOf(row, 'bytes')], [0, 255])
      assert.equal(maybe(dateOf, { at: null }, 'at'), null)
      assert.throws(() => dateOf({ at: 'nonsense' }, 'at'), /'at' holds a string that Millrace did not write/)
      await database.write([{ sql: 'DELETE FROM {things}' }])
    })

    test('a list of texts can be a parameter', async () => {
      await database.write(['a', 'b', 'c'].map((id) => insert(id)))
      const found = await database.read(`SELECT id FROM {things} WHERE id IN ${database.dialect.texts('$1')}`, [
        JSON.stringify(['a', 'c', 'x']),
      ])
      assert.deepEqual(found.map((row) => textOf(row, 'id')).sort(), ['a', 'c'])
      await database.write([{ sql: 'DELETE FROM {things}' }])
    })

    test('statements that are written together happen together or not at all', async () => {
      await assert.rejects(database.write([insert('one'), insert('one')]), (error) =>
        isMillraceError(error, 'ERR_STORAGE_FAILED', 'ERR_STORAGE_REFUSED'),
      )
      assert.deepEqual(await ids(), [])
    })

    test('a transaction that throws leaves nothing behind, and its error is passed on unchanged', async () => {
      const mine = new TypeError('mine')
      await assert.rejects(
        database.transaction(async ({ rows }) => {
          await rows(insert('lost').sql, ['lost', 1])
          throw mine
        }),
        (error) => error === mine,
      )
      assert.deepEqual(await ids(), [])
    })

    test('a job that is enqueued within a transaction commits with its rows or not at all', async () => {
      const mill = await open(place.url)
      for (const fails of [true, false]) {
        const stored = database.transaction(async ({ rows, within }) => {
          await rows(insert('with-job').sql, ['with-job', 1])
          await mill.enqueue(welcome, {}, { within })
          if (fails) throw new Error('changed my mind')
        })
        await (fails ? assert.rejects(stored, /changed my mind/) : stored)
        assert.equal((await mill.jobs()).length, fails ? 0 : 1)
      }
      assert.deepEqual(await ids(), ['with-job'])
      await mill.close()
      await database.write([{ sql: 'DELETE FROM {things}' }])
    })

    test('transactions and writes at the same time do not mix', async () => {
      const counted = Array.from({ length: 10 }, (_, index) =>
        database.transaction(async ({ rows }) => {
          await rows(`INSERT INTO {things} (id, n) VALUES ('sum', 1) ON CONFLICT (id) DO UPDATE SET n = {things}.n + 1`)
          await new Promise((resolve) => setImmediate(resolve))
          await rows(insert('').sql, [`t${index}`, 1])
        }),
      )
      await Promise.all([
        ...counted,
        ...Array.from({ length: 10 }, (_, index) => database.write([insert(`w${index}`)])),
      ])
      const [row] = await database.read(
        `SELECT n, (SELECT count(*) FROM {things}) AS total FROM {things} WHERE id = 'sum'`,
      )
      assert.deepEqual([numberOf(row ?? {}, 'n'), numberOf(row ?? {}, 'total')], [10, 21])
      await database.write([{ sql: 'DELETE FROM {things}' }])
    })

    test('two processes that migrate at once create the tables once; a newer schema is refused only if it needs more', async () => {
      const other = await openDatabase(place.url, { schemas: [] })
      const more: WorkloadSchema = {
        name: 'more',
        migrations: [
          { version: 1, sql: { sqlite: 'CREATE TABLE {more} (a TEXT)', postgres: 'CREATE TABLE {more} (a TEXT)' } },
        ],
      }
      const [one, two] = await Promise.all([migrateSchema(database, more, 0), migrateSchema(other, more, 0)])
      assert.deepEqual([...one, ...two], [1])
      assert.deepEqual(await plannedMigrations(database, more), [])
      await assert.rejects(plannedMigrations(database, { ...more, migrations: [] }), (error) =>
        isMillraceError(error, 'ERR_SCHEMA_NEWER'),
      )
      const column = (name: string) => ({
        sqlite: `ALTER TABLE {more} ADD COLUMN ${name} TEXT`,
        postgres: `ALTER TABLE {more} ADD COLUMN ${name} TEXT`,
      })
      const addition = { version: 2, needs: 1, sql: column('b') }
      const later = { ...more, migrations: [...more.migrations, addition] }
      assert.deepEqual(await migrateSchema(database, later, 0), [2])
      assert.deepEqual(await migrateSchema(database, more, 0), [])
      const last = { ...more, migrations: [...later.migrations, { version: 3, needs: 2, sql: column('c') }] }
      assert.deepEqual(await migrateSchema(database, last, 0), [3])
      assert.deepEqual(await plannedMigrations(database, later), [])
      await assert.rejects(plannedMigrations(database, more), (error) => isMillraceError(error, 'ERR_SCHEMA_NEWER'))
      await assert.rejects(
        openDatabase(place.url, { schemas: [{ ...more, name: 'absent' }], migrate: false }),
        /millrace migrate --workload absent/,
      )
      await other.close()
    })
  })
}

for (const [library, openHandle] of [
  ['node:sqlite', (path: string): SqliteDatabase => new DatabaseSync(path)],
  ['better-sqlite3', (path: string): SqliteDatabase => new BetterSqlite(path)],
] as const) {
  test(`statements run in a transaction of the user on the same file, and nowhere else (${library})`, async () => {
    const place = await WORKLOAD_PLACES[0].makePlace()
    const database = await openDatabase(place.url, { schemas: [schema] })
    const users = openHandle(place.url.slice('sqlite:'.length))
    assert.throws(() => database.on(users), /open transaction on the same file/)
    for (const ends of ['ROLLBACK', 'COMMIT']) {
      users.exec('BEGIN IMMEDIATE')
      const { rows } = database.on(users)
      assert.deepEqual(await rows('INSERT INTO {things} (n, id, doc) VALUES ($2, $1, $1)', ['theirs', 5]), [])
      const changed = await rows('UPDATE {things} SET flag = $2 WHERE id = $1 RETURNING id, doc, n', ['theirs', true])
      assert.deepEqual({ ...changed[0] }, { id: 'theirs', doc: 'theirs', n: 5 })
      users.exec(ends)
      assert.equal((await database.read('SELECT id FROM {things}')).length, ends === 'COMMIT' ? 1 : 0)
    }
    users.close()
    await database.close()
    await place.remove()
  })
}

test('a connection that ends within a transaction fails it alone', async () => {
  const place = await WORKLOAD_PLACES[1].makePlace()
  const database = await openDatabase(place.url, { schemas: [schema], migrate: true })
  const ended = database.transaction(async ({ rows }) => {
    await rows(`INSERT INTO {things} (id) VALUES ('lost')`)
    const [row] = await rows('SELECT pg_backend_pid() AS pid')
    // Waits until the server process is gone.
    await database.read('SELECT pg_terminate_backend($1, 5000)', [numberOf(row ?? {}, 'pid')])
    await rows(`INSERT INTO {things} (id) VALUES ('lost too')`)
  })
  await assert.rejects(ended, (error) => isMillraceError(error, 'ERR_STORAGE_FAILED'))
  assert.deepEqual(await database.read('SELECT id FROM {things}'), [])
  await database.close()
  await place.remove()
})

test('a write that may be repeated survives a connection that ends, and other writes do not', async () => {
  const place = await WORKLOAD_PLACES[1].makePlace()
  const database = await openDatabase(place.url, { schemas: [schema], migrate: true })
  const sql = `INSERT INTO {things} (id, n) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET n = {things}.n + 1`
  /** Ends the connection of a write while it waits for a lock, then lets go. */
  const interrupted = (id: string, isRepeatable: boolean) =>
    database.transaction(async ({ rows }) => {
      await rows('LOCK TABLE {things} IN EXCLUSIVE MODE')
      const [own] = await rows('SELECT pg_backend_pid() AS pid')
      const writing = database.write([{ sql, values: [id] }], { isRepeatable }).then(
        () => 'written',
        () => 'lost',
      )
      const blocked = `SELECT pid FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))`
      for (;;) {
        const [row] = await database.read(blocked, [numberOf(own ?? {}, 'pid')])
        if (row === undefined) continue
        await database.read('SELECT pg_terminate_backend($1, 5000)', [numberOf(row, 'pid')])
        // Not the promise itself: the transaction would wait for what it blocks.
        return { writing }
      }
    })
  assert.equal(await (await interrupted('again', true)).writing, 'written')
  assert.equal(await (await interrupted('once', false)).writing, 'lost')
  assert.deepEqual(
    (await database.read('SELECT id, n FROM {things}')).map((row) => [row.id, numberOf(row, 'n')]),
    [['again', 1]],
  )
  await database.close()
  await place.remove()
})

describe('statements that use indexes, on Postgres', () => {
  const find = 'SELECT id FROM {things} WHERE id = $1'
  const kept = `SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE '%WHERE id = $1'`

  for (const [given, expected] of [
    ['pooler=session', { prepared: 1, isScanning: 'off' }],
    ['pooler=transaction', { prepared: 0, isScanning: 'on' }],
    // They replace ours, so plans could become wrong while the tables grow.
    ['options=-c%20work_mem%3D8MB', { prepared: 0, isScanning: 'on' }],
  ] as const) {
    test(`are ${expected.prepared === 1 ? '' : 'not '}prepared with ${given}`, async () => {
      const place = await WORKLOAD_PLACES[1].makePlace()
      const url = `${place.url}&pool=1&${given}`
      const database = await openDatabase(url, { schemas: [schema], migrate: true, usesIndexes: true })
      await database.write([{ sql: 'INSERT INTO {things} (id) VALUES ($1)', values: ['a'] }])
      for (let round = 0; round < 8; round += 1) assert.equal((await database.read(find, ['a'])).length, 1)
      const plans = await database.read(kept)
      assert.equal(plans.length, expected.prepared)
      if (expected.prepared === 1) assert.ok(numberOf(plans[0] ?? {}, 'generic_plans') > 0)
      const [row] = await database.read(`SELECT current_setting('enable_seqscan') AS value`)
      assert.equal(row?.value, expected.isScanning)
      await database.close()
      await place.remove()
    })
  }

  test('are not prepared on a connection of the caller', async () => {
    const place = await WORKLOAD_PLACES[1].makePlace()
    const database = await openDatabase(`${place.url}&pool=1`, { schemas: [schema], migrate: true, usesIndexes: true })
    await database.transaction(async ({ within }) => {
      await database.on(within).rows(find, ['a'])
      assert.deepEqual(await database.on(within).rows(kept), [])
    })
    await database.close()
    await place.remove()
  })
})

test('other engines and databases in memory are refused', async () => {
  await assert.rejects(openDatabase('redis://127.0.0.1', { schemas: [] }), /give a sqlite: or postgres: URL/)
  await assert.rejects(openDatabase('sqlite::memory:', { schemas: [] }), /give a file/)
})
