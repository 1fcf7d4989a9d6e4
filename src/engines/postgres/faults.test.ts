import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import pg from 'pg'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { openWire } from '../../../test/fixtures/wire.ts'
import { type PostgresServer, query, schemaUrl, startPostgres } from '../../../test/servers/postgres.ts'
import type { Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import type { Lease } from '../../engine/outcome.ts'
import { EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate } from './module.ts'

const never = new AbortController().signal
const settings = { clock: systemClock, migrate: false }
const complete = { kind: 'complete', result: '1', durationMs: 1 } as const
let server: PostgresServer
let [url, schema] = ['', '']

before(async () => {
  server = await startPostgres()
  ;({ url, schema } = schemaUrl(server))
  await migrate(url, settings)
  await query(server.url, `create role guarded login password 'right'`)
})

const coded = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof EngineError && error.code === code && text.test(error.message)

async function take(engine: Engine, max = 10): Promise<readonly Lease[]> {
  const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
  return consumer.claim({ max, waitMs: 50_000, signal: never })
}

describe('faults of Postgres', () => {
  test('wrong credentials, no server, no database and a bad URL are told clearly and at once', async () => {
    const wrong = url.replace('postgres@', 'guarded:wr0ng@')
    await assert.rejects(openEngine(wrong, settings), coded('ERR_STORAGE_OPEN', /user or password is wrong/))
    await assert.rejects(
      openEngine(wrong, settings),
      (error) => error instanceof Error && !error.message.includes('wr0ng'),
    )
    const nobody = url.replace(/:\d+\//, ':1/')
    await assert.rejects(openEngine(nobody, settings), coded('ERR_STORAGE_OPEN', /no server answers there/))
    const missing = url.replace('/postgres?', '/nowhere?')
    await assert.rejects(openEngine(missing, settings), coded('ERR_STORAGE_OPEN', /the database does not exist/))
    for (const bad of [`${url}&pool=many`, `${url}&pooler=odd`, 'postgres:', `${url}&prepare=perhaps`]) {
      await assert.rejects(openEngine(bad, settings), coded('ERR_ENGINE_URL', /postgres:/), bad)
    }
  })

  test('a role without rights and a table without its columns are told with what to do', async () => {
    const theirs = url.replace('postgres@', 'guarded:right@')
    await assert.rejects(openEngine(theirs, settings), coded('ERR_STORAGE_READONLY', /grant=/))
    const other = schemaUrl(server)
    await migrate(other.url, settings)
    const engine = await openEngine(other.url, settings)
    await query(server.url, `alter table ${other.schema}.jobs drop column payload_version`)
    await assert.rejects(engine.enqueue([newJob()]), coded('ERR_SCHEMA_MISSING', /millrace migrate/))
    await engine.close()
  })

  test('what the server ended by a limit of the role on transactions is repeated', async () => {
    const own = schemaUrl(server)
    await query(server.url, `create role limited login; alter role limited set transaction_timeout = '300ms'`)
    await migrate(`${own.url}&grant=limited`, settings)
    const engine = await openEngine(own.url.replace('postgres@', 'limited@'), settings)
    const locker = new pg.Client({ connectionString: server.url })
    await locker.connect()
    await locker.query(`begin; lock table ${own.schema}.jobs`)
    const enqueued = engine.enqueue([newJob()])
    const ended = `select 1 from pg_stat_activity where usename = 'limited' and wait_event_type = 'Lock'`
    while ((await query(server.url, ended)).length === 0);
    while ((await query(server.url, ended)).length > 0);
    await locker.end()
    assert.equal((await enqueued)[0]?.status, 'enqueued')
    await engine.close()
  })

  test('a statement that takes too long is given up, and the engine goes on', async () => {
    const engine = await openEngine(`${url}&timeout=2000`, settings)
    const locker = new pg.Client({ connectionString: server.url })
    await locker.connect()
    await locker.query(`begin; lock table ${schema}.jobs`)
    await assert.rejects(engine.enqueue([newJob()]), coded('ERR_STORAGE_BUSY', /took too long/))
    await locker.query('rollback')
    await locker.end()
    const [receipt] = await engine.enqueue([newJob()])
    assert.equal(receipt?.status, 'enqueued')
    await engine.close()
  })

  test('connections that the server ends are replaced, and a waiting claim still receives its job', async () => {
    const engine = await openEngine(url, settings)
    await query(server.url, `delete from ${schema}.jobs`)
    // A claim whose answer is lost rejects, and its worker asks again.
    const claim = repeat(() => take(engine))
    await query(
      server.url,
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace'`,
    )
    const job = newJob()
    await repeat(() => engine.enqueue([job]))
    const [lease] = await claim
    assert.equal(lease?.job.id, job.id)
    await engine.close()
  })

  test('a server that is restarted, also without a goodbye, loses no job and accepts no stale settle', async () => {
    const engine = await openEngine(url, settings)
    await query(server.url, `delete from ${schema}.jobs`)
    const job = newJob()
    await engine.enqueue([job])
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    for (const how of ['restart', 'crash'] as const) {
      const [lease] = await repeat(() => consumer.claim({ max: 1, waitMs: 50_000, signal: never }))
      assert.equal(lease?.job.id, job.id)
      await server.restart?.(how)
      if (lease === undefined) return
      // The lease outlives the server: it is a row.
      assert.deepEqual(await repeat(() => consumer.renew([lease], 60_000)), [])
      const outcome = { kind: 'release', delayMs: 0, reason: how } as const
      assert.deepEqual(await repeat(() => consumer.settle([{ lease, outcome }])), [])
      assert.equal((await consumer.settle([{ lease, outcome: complete }])).length, 1, 'a stale settle was accepted')
    }
    await engine.close()
  })

  test('a listening connection that is gone is made again, and tells of jobs of other processes', async () => {
    const [engine, other] = [await openEngine(`${url}&poll=600000`, settings), await openEngine(url, settings)]
    await query(server.url, `delete from ${schema}.jobs`)
    for (let round = 0; round < 2; round += 1) {
      const claim = take(engine)
      await listened(1)
      const job = newJob()
      await other.enqueue([job])
      const startedAtMs = systemClock.monotonicMs()
      assert.equal((await claim)[0]?.job.id, job.id)
      // Without it the claim would end after its 50 s.
      assert.ok(systemClock.monotonicMs() - startedAtMs < 40_000, 'NOTIFY did not wake it')
      await query(server.url, `select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN%'`)
    }
    await engine.close()
    await other.close()
  })

  test('a connection that answers no more is given up, and what was sent over it is unknown', {
    timeout: 300_000,
  }, async () => {
    const wire = await openWire(url)
    const engine = await openEngine(`${wire.url}&pool=1&listen=false&timeout=3000`, settings)
    await engine.enqueue([newJob()])
    // The one connection is free again: the tidings of the new job have gone out.
    await engine.ping()
    wire.freeze()
    await assert.rejects(engine.enqueue([newJob()]), coded('ERR_STORAGE_BUSY', /did not answer in time/))
    wire.thaw()
    await repeat(() => engine.enqueue([newJob()]))
    await engine.close()
    await wire.close()
  })
})

/** Until that many connections listen. */
async function listened(count: number): Promise<void> {
  for (;;) {
    const rows = await query(server.url, `select 1 from pg_stat_activity where query like 'LISTEN%' and state = 'idle'`)
    if (rows.length >= count) return
    await systemClock.sleep(20)
  }
}

/** What a worker does with a call whose outcome is unknown and that may be repeated. */
async function repeat<Value>(call: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call()
    } catch (error) {
      if (tries === 200) throw error
      await systemClock.sleep(50)
    }
  }
}
