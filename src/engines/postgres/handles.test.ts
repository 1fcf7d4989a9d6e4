import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { claimGreetings } from '../../../test/fixtures/claim.ts'
import { closeUnderWorker } from '../../../test/fixtures/closed-handle.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { dropSchema, type PostgresServer, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { open } from '../../client/mill.ts'
import { openEngine } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { PostgresEngine } from './engine.ts'
import { migrate } from './module.ts'

const settings = { clock: systemClock, migrate: true }
let server: PostgresServer
let [url, schema] = ['', '']

before(async () => {
  server = await postgresServer()
  ;({ url, schema } = schemaUrl(server))
  await migrate(url, settings)
})

after(() => dropSchema(url, schema))

describe('handles of Postgres', () => {
  test('a pool of the user’s own is used and left open', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 4 })
    const engine = await PostgresEngine.connect({ pool }, settings, { schema })
    const job = newJob()
    await engine.enqueue([job])
    assert.deepEqual(
      (await claimGreetings(engine)).map((lease) => lease.job.id),
      [job.id],
    )
    await engine.close()
    assert.equal((await pool.query('select 1 as one')).rows[0].one, 1)
    await pool.end()
  })

  test('a client of the user’s own is used by one call after the other and left open', async () => {
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    const engine = await PostgresEngine.connect({ client }, settings, { schema })
    const jobs = [newJob({ key: 'a' }), newJob({ key: 'b' }), newJob()]
    // The keyed ones are transactions, and none may find itself in another's.
    await Promise.all(jobs.map((job) => engine.enqueue([job])))
    assert.equal((await claimGreetings(engine, 10)).length, 3)
    await engine.close()
    assert.equal((await client.query('select 1 as one')).rows[0].one, 1)
    await client.end()
  })

  test('open takes a pool and a client as they are, in the schema public', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 2 })
    await assert.rejects(
      openEngine(pool, settings),
      (error) => error instanceof EngineError && error.code === 'ERR_SCHEMA_MISSING',
    )
    assert.equal((await pool.query('select 1 as one')).rows[0].one, 1, 'a refused pool was ended')
    await pool.end()
  })

  test('within must be a client with an open transaction on the same database', async () => {
    const engine = await openEngine(url, settings)
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    await assert.rejects(engine.enqueue([newJob()], client), /no open transaction; run BEGIN/)
    await assert.rejects(engine.enqueue([newJob()], { some: 'object' }), /must be a pg client/)
    const name = `${schema}_other`
    await query(server.url, `create database ${name}`)
    const other = new URL(server.url)
    other.pathname = `/${name}`
    const elsewhere = new pg.Client({ connectionString: other.href })
    await elsewhere.connect()
    await elsewhere.query('begin')
    await assert.rejects(engine.enqueue([newJob()], elsewhere), /another database/)
    await elsewhere.end()
    await query(server.url, `drop database ${name}`)
    await client.query('begin')
    const [receipt] = await engine.enqueue([newJob()], client)
    assert.equal(receipt?.status, 'enqueued')
    await client.query('commit')
    assert.equal((await claimGreetings(engine)).length, 1)
    await client.end()
    await engine.close()
  })

  test('without prepared statements and without LISTEN, as behind a transaction pooler, everything still works', async () => {
    const engine = await openEngine(`${url}&pooler=transaction&poll=50`, settings)
    const claim = (await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })).claim({
      max: 1,
      waitMs: 60_000,
      signal: new AbortController().signal,
    })
    const other = await openEngine(url, settings)
    await other.enqueue([newJob()])
    assert.equal((await claim).length, 1)
    const listening = () =>
      query(server.url, `select 1 from pg_stat_activity where query like 'LISTEN%' and query like '%${schema}%'`)
    assert.equal((await listening()).length, 0, 'who only enqueues does not listen')
    await other.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'v' })
    // Consuming does not wait for it.
    while ((await listening()).length === 0) await systemClock.sleep(20)
    assert.equal((await listening()).length, 1, 'only the one that was not told otherwise listens')
    await engine.close()
    await other.close()
  })
})

describe('a handle of Postgres that is closed under a worker', () => {
  for (const doing of ['waits', 'runs a job'] as const) {
    test(`a pool is reported while the worker ${doing}, and nothing is thrown out of a timer`, async (t) => {
      const pool = new pg.Pool({ connectionString: server.url, max: 4 })
      const mill = await open(await PostgresEngine.connect({ pool }, settings, { schema }))
      t.after(() => mill.close())
      // It resolves when every connection is given back, also the one that listens.
      await closeUnderWorker(mill, () => void pool.end(), doing)
    })

    test(`a client is reported while the worker ${doing}, and nothing is thrown out of a timer`, async (t) => {
      const client = new pg.Client({ connectionString: server.url })
      await client.connect()
      const mill = await open(await PostgresEngine.connect({ client }, settings, { schema }))
      t.after(() => mill.close())
      await closeUnderWorker(mill, () => client.end(), doing)
    })
  }
})
