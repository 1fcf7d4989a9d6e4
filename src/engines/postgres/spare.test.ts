import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import pg from 'pg'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import type { PgPoolClient } from './driver.ts'
import { PostgresEngine } from './engine.ts'
import { migrate } from './module.ts'
import { Spare } from './spare.ts'

const settings = { clock: systemClock, migrate: true }

/** A pool that makes a connection for every call, and what was given back to it. */
function staged() {
  const pool = { waitingCount: 0 }
  const given: (boolean | Error | undefined)[] = []
  let made = 0
  const spare = new Spare(pool, async () => {
    made += 1
    const release = (destroy?: boolean | Error): void => void given.push(destroy)
    return Object.assign(new EventEmitter(), {
      release,
      query: async () => ({ rows: [], rowCount: 0 }),
      end: async () => {},
    }) satisfies PgPoolClient
  })
  return { pool, spare, given, made: () => made }
}

test('one statement after the other goes over the same connection, which the pool gets back at the end', async () => {
  const { spare, given, made } = staged()
  for (let nth = 0; nth < 3; nth += 1) (await spare.acquire()).release()
  assert.deepEqual([made(), given], [1, []])
  const [one, other] = [await spare.acquire(), await spare.acquire()]
  one.release()
  other.release()
  assert.deepEqual([made(), given], [2, [false]], 'one is enough')
  spare.close()
  assert.deepEqual(given, [false, false])
})

test('who waits for a connection of the pool gets it, and one that comes back after the end is not kept', async () => {
  const { pool, spare, given } = staged()
  const client = await spare.acquire()
  pool.waitingCount = 1
  client.release()
  pool.waitingCount = 0
  const last = await spare.acquire()
  spare.close()
  last.release()
  assert.deepEqual(given, [false, false])
})

test('a connection that is broken is not lent again, whether it breaks in use or afterwards', async () => {
  const { spare, given, made } = staged()
  const broken = await spare.acquire()
  broken.release(true)
  const ended = await spare.acquire()
  ended.release()
  Object(ended).emit('error', new Error('gone'))
  Object(ended).emit('end')
  const lent = await spare.acquire()
  Object(lent).emit('error', new Error('gone'))
  lent.release()
  ;(await spare.acquire()).release()
  assert.deepEqual([made(), given], [4, [true, true, true]])
})

test('an idle connection that the server ends is replaced', async (t) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  const engine = await openEngine(`${url}&application_name=${schema}`, settings)
  t.after(async () => {
    await engine.close()
    await dropSchema(server.url, schema)
  })
  await engine.enqueue([newJob()])
  const sessions = () => query(server.url, `select 1 from pg_stat_activity where application_name = '${schema}'`)
  assert.equal((await sessions()).length, 1)
  await query(server.url, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${schema}'`)
  // Told by then, it does not try the one that is gone.
  while ((await sessions()).length > 0) await systemClock.sleep(20)
  await systemClock.sleep(50)
  await engine.enqueue([newJob()])
})

test('the version of the schema is looked at behind the call that has it looked at', async (t) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  const asked: string[] = []
  const pool = new pg.Pool({ connectionString: server.url, max: 1 })
  pool.on('connect', (client) => {
    const send = client.query.bind(client)
    const watch = (...args: unknown[]) => {
      asked.push(Object(args[0]).text)
      return Reflect.apply(send, client, args)
    }
    Object.assign(client, { query: watch })
  })
  const engine = await PostgresEngine.connect({ pool }, settings, { schema, listen: false })
  t.after(async () => {
    await engine.close()
    await pool.end()
    await dropSchema(server.url, schema)
  })
  await systemClock.sleep(1_400)
  asked.length = 0
  await engine.enqueue([newJob()])
  while (!asked.some((text) => text.includes('needed'))) await systemClock.sleep(5)
  assert.match(asked[0] ?? '', /INSERT INTO/)
})
