import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { applyMigrations, openEngine } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { claimGreetings } from '../../test/fixtures/claim.ts'
import { newJob } from '../../test/fixtures/new-job.ts'
import { dropSchema, postgresServer, schemaUrl } from '../../test/servers/postgres.ts'
import { openJobTables } from './job-tables.ts'
import { Reaper } from './reaper.ts'

/** Millrace's own `jobs`, with an engine on it and a pool beside it. */
async function besideEngine(t: TestContext) {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  const settings = { clock: systemClock, migrate: false }
  await applyMigrations(url, settings)
  const engine = await openEngine(url, settings)
  const pool = new pg.Pool({ connectionString: server.url })
  t.after(async () => {
    await engine.close()
    await pool.end()
    await dropSchema(server.url, schema)
  })
  const expire = () =>
    pool.query(`update "${schema}".jobs set lease_expires_at = now() - interval '1 s' where status = 'processing'`)
  return { engine, pool, schema, expire, reaper: new Reaper(pool, { tables: ['jobs'], schema }) }
}

// E01 X171
test('a job of the engine whose lease has ended is requeued, and its late holder is refused', async (t) => {
  const { engine, pool, schema, expire, reaper } = await besideEngine(t)
  const job = newJob()
  await engine.enqueue([job])
  const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'host:1:test' })
  const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  assert.ok(lease)
  await expire()
  assert.deepEqual((await reaper.runOnce()).requeuedIds, [job.id])
  const lost = await consumer.settle([{ lease, outcome: { kind: 'complete', result: 'null', durationMs: 1 } }])
  assert.equal(lost.length, 1)
  await pool.query(`update "${schema}".jobs set next_earliest_run_at = now() - interval '1 s'`)
  const [again] = await claimGreetings(engine)
  assert.deepEqual([again?.job.id, again?.attempt], [job.id, 2])
})

// E61
test('a job of the engine that has used its attempts is a dead letter that says when and why', async (t) => {
  const { engine, expire, reaper } = await besideEngine(t)
  const job = newJob({ attempts: 1 })
  await engine.enqueue([job])
  await claimGreetings(engine)
  await expire()
  assert.deepEqual((await reaper.runOnce()).failedIds, [job.id])
  const [view] = (await engine.inspector?.find([job.id])) ?? []
  assert.equal(view?.state, 'dead_letter')
  assert.equal(view?.error?.message, 'lease_expired')
  assert.ok(view?.completedAtMs !== null && view?.completedAtMs !== undefined)
})

// X191
test('a job of the engine that is scheduled for later is neither due nor claimable', async (t) => {
  const { engine, pool, schema } = await besideEngine(t)
  const later = newJob({ delayMs: 60_000 })
  const now = newJob()
  await engine.enqueue([later, now])
  await pool.query(
    `insert into "${schema}".jobs (id, type, run_at) values ('by hand', 'greet', now() + interval '1 h')`,
  )
  const { listDue, claimJob, finishJob } = openJobTables(pool, { schema, tables: ['jobs'] })
  assert.deepEqual(await listDue({ table: 'jobs' }), { ok: true, value: [now.id] })
  for (const id of [later.id, 'by hand']) {
    const refusal = await claimJob(id, 'worker-1', 60, { table: 'jobs' })
    assert.equal(refusal.ok ? 'claimed' : refusal.code, 'not_claimable')
  }
  assert.equal((await claimJob(now.id, 'worker-1', 60, { table: 'jobs' })).ok, true)
  assert.equal((await finishJob(now.id, true, {}, { table: 'jobs', workerId: 'worker-1' })).ok, true)
  const [view] = (await engine.inspector?.find([now.id])) ?? []
  assert.equal(view?.state, 'completed')
  assert.ok(view?.completedAtMs !== null && view?.completedAtMs !== undefined)
})
