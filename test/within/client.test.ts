import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { PostgresEngine } from '../../src/engines/postgres/index.ts'
import { defineJob, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { postgresServer } from '../servers/postgres.ts'
import { useUserDatabase, welcome } from './user-database.ts'

const database = useUserDatabase(2)

// What Prisma, a trigger, a function or another language does: it needs no Millrace to enqueue.
test('a plain INSERT within any transaction is a job, or none if it is rolled back', async () => {
  const { pool, schema, mill, stored } = database()
  const client = await pool.connect()
  for (const end of ['rollback', 'commit']) {
    await client.query('begin')
    await client.query('insert into users (name) values ($1)', ['Eve'])
    await client.query(`insert into ${schema}.jobs (type, payload) values ($1, $2)`, ['welcome', '{"name":"Eve"}'])
    await client.query(end)
    assert.deepEqual(await stored(), end === 'commit' ? [['Eve'], ['Eve']] : [[], []])
  }
  client.release()
  const [job] = await mill.jobs({ type: 'welcome' })
  assert.ok(job)
  await mill.work([welcome])
  assert.equal(await mill.result(job.id), 'welcomed Eve')
})

test('an INSERT that notifies in its transaction wakes a worker when it commits', async (t) => {
  const { pool, schema } = database()
  const address = new URL((await postgresServer()).url)
  const [options, client] = [{ schema, poll: '60000' }, await pool.connect()]
  for (const [name, value] of Object.entries(options)) address.searchParams.set(name, value)
  const mill = await open(address.href)
  t.after(async () => {
    client.release()
    await mill.close()
  })
  // The doctor waits until notifications are heard.
  await mill.engine.diagnose?.()
  const ran = Promise.withResolvers<void>()
  await mill.work([defineJob({ type: 'told', run: () => ran.resolve() })])
  await client.query('begin')
  await client.query(`insert into ${schema}.jobs (type) values ('told')`)
  await client.query(`select pg_notify('millrace:${schema}', 'work')`)
  await client.query('commit')
  const startedAtMs = systemClock.monotonicMs()
  await ran.promise
  // The poll would come after a minute.
  assert.ok(systemClock.monotonicMs() - startedAtMs < 40_000)
})

test('transactions that hold every connection of a pool shared with the mill do not wait for each other', async () => {
  const { pool, schema } = database()
  const settings = { clock: systemClock, migrate: false }
  const mill = await open(await PostgresEngine.connect({ pool }, settings, { schema, listen: false }))
  const clients = [await pool.connect(), await pool.connect()]
  await Promise.all(
    clients.map(async (client, index) => {
      await client.query('begin')
      await mill.enqueue(welcome, { name: `Fay ${index}` }, { within: client })
      await client.query('commit')
      client.release()
    }),
  )
  assert.equal((await mill.jobs({ type: 'welcome' })).length, 3)
  await mill.close()
})

test('a pool of one connection is enough: nothing keeps it for itself', { timeout: 180_000 }, async (t) => {
  const { schema, pool } = database()
  const single = new pg.Pool({ ...pool.options, max: 1 })
  const settings = { clock: systemClock, migrate: false }
  const mill = await open(await PostgresEngine.connect({ pool: single }, settings, { schema }))
  t.after(async () => {
    await mill.close()
    await single.end()
  })
  const startedAtMs = systemClock.monotonicMs()
  await mill.work([welcome])
  assert.equal(await mill.result(await mill.enqueue(welcome, { name: 'Gus' })), 'welcomed Gus')
  assert.ok(systemClock.monotonicMs() - startedAtMs < 20_000, 'LISTEN kept the connection')
})
