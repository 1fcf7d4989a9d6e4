import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import type { Engine } from '../../src/engine/engine.ts'
import { openEngine } from '../../src/engine/open.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { EngineError } from '../../src/errors.ts'
import { defineJob, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { claimAll } from '../fixtures/claim.ts'
import { newJob } from '../fixtures/new-job.ts'
import { findPgbouncer, MISSING, type Pgbouncer, startPgbouncer } from '../servers/pgbouncer.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'

const program = findPgbouncer()
const never = new AbortController().signal
const settings = { clock: systemClock, migrate: false }
const complete = { kind: 'complete', result: '1', durationMs: 1 } as const

describe('behind PgBouncer in transaction mode', { skip: program === null && MISSING }, () => {
  let pooler: Pgbouncer
  let [url, direct, schema] = ['', '', '']

  before(async () => {
    const server = await postgresServer()
    ;({ url: direct, schema } = schemaUrl(server))
    await migrate(direct, settings)
    pooler = await startPgbouncer(program ?? '', server.url)
    url = `${pooler.through(direct)}&pooler=transaction`
  })

  after(async () => {
    await pooler?.stop()
    await dropSchema(direct, schema)
  })

  const open1 = async (t: { after(run: () => Promise<void>): void }, address = url): Promise<Engine> => {
    const engine = await openEngine(address, settings)
    t.after(() => engine.close())
    return engine
  }

  test('jobs are enqueued, claimed, renewed, reported on, settled and cancelled', async (t) => {
    const engine = await open1(t)
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    const jobs = Array.from({ length: 200 }, () => newJob())
    // Many at once: more than the pooler has connections, so that each statement may meet another one.
    await Promise.all(jobs.map((job) => engine.enqueue([job])))
    await engine.enqueue([newJob({ key: 'once' })])
    assert.equal((await engine.enqueue([newJob({ key: 'once' })]))[0]?.status, 'duplicate')
    const leases = await claimAll(consumer, 201)
    assert.deepEqual(await consumer.renew(leases, 60_000), [])
    const [first, second, ...rest] = leases
    assert.ok(first && second)
    assert.equal(await consumer.report(first, '{"percent":50}'), true)
    assert.equal(await engine.controls?.cancel(second.job.id, { who: 'ann', reason: 'a test' }), true)
    const lost = await consumer.settle([first, second, ...rest].map((lease) => ({ lease, outcome: complete })))
    assert.deepEqual(
      lost.map(({ lease, reason }) => [lease.job.id, reason]),
      [[second.job.id, 'cancelled']],
    )
    assert.equal((await engine.counts()).greet?.completed, 200)
  })

  test('a waiting worker is woken by its poll, though LISTEN hears nothing', async (t) => {
    const [engine, other] = [await open1(t, `${url}&poll=200`), await open1(t)]
    const consumer = await engine.consume({ types: [{ type: 'wake', leaseMs: 60_000 }], worker: 'w' })
    const claim = consumer.claim({ max: 1, waitMs: 60_000, signal: never })
    for (let look = 0; look < 50; look += 1) await engine.ping()
    const job = newJob({ type: 'wake' })
    await other.enqueue([job])
    const sinceMs = systemClock.monotonicMs()
    assert.deepEqual(
      (await claim).map((lease) => lease.job.id),
      [job.id],
    )
    assert.ok(systemClock.monotonicMs() - sinceMs < 30_000, 'the poll did not wake it')
  })

  test('the holder of a job that another process cancels is told by the poll', async (t) => {
    const [engine, other] = [await open1(t, `${url}&poll=200`), await open1(t)]
    const consumer = await engine.consume({ types: [{ type: 'lost', leaseMs: 60_000 }], worker: 'w' })
    const told = new Promise<string>((resolve) => {
      consumer.listen({ onLost: ({ lease, reason }) => resolve(`${lease.job.id} ${reason}`) })
    })
    const job = newJob({ type: 'lost' })
    await engine.enqueue([job])
    await consumer.claim({ max: 1, waitMs: 30_000, signal: never })
    await other.controls?.cancel(job.id, { who: 'ann', reason: 'a test' })
    const done = new AbortController()
    const late = systemClock.sleep(60_000, done.signal).then(() => 'nobody told')
    assert.equal(await Promise.race([told, late]), `${job.id} cancelled`)
    done.abort()
  })

  test('a worker of two types runs jobs, with a rate limit, a latest key and a dependency', async () => {
    const mill = await open(url)
    const ran: string[] = []
    const limited = defineJob({
      type: 'limited',
      limit: { max: 100, per: '1s' },
      run: () => void ran.push('limited'),
    })
    const latest = defineJob({ type: 'latest', run: () => void ran.push('latest') })
    await mill.enqueue(limited, null)
    const first = await mill.enqueue(latest, null, { latest: 'k' })
    const second = await mill.enqueue(latest, null, { latest: 'k' })
    assert.deepEqual([first.status, second.status], ['enqueued', 'replaced'])
    const last = await mill.enqueue(limited, null, { after: [second.id] })
    await mill.work([limited, latest])
    await mill.result(last)
    assert.deepEqual(ran.toSorted(), ['latest', 'limited', 'limited'])
    await mill.close()
  })

  test('a transaction of the user’s own through the pooler commits the job with it', async (t) => {
    const engine = await open1(t)
    const client = new pg.Client({ connectionString: pooler.through((await postgresServer()).url) })
    await client.connect()
    for (const [end, expected] of [
      ['rollback', 0],
      ['commit', 1],
    ] as const) {
      await client.query('begin')
      await engine.enqueue([newJob({ type: 'within' })], client)
      await client.query(end)
      assert.equal((await engine.counts()).within?.ready ?? 0, expected)
    }
    await client.end()
  })

  test('a URL that does not name the pooler is refused with what to add', async () => {
    await assert.rejects(openEngine(pooler.through(direct), settings), (error) => {
      assert.ok(error instanceof EngineError)
      assert.equal(error.code, 'ERR_STORAGE_OPEN')
      assert.match(error.message, /pooler=transaction/)
      return true
    })
  })

  test('the doctor tells that a connection that listens through the pooler hears nothing', async (t) => {
    const findings = async (address: string): Promise<readonly string[]> => {
      const engine = await open1(t, address)
      const all = (await engine.diagnose?.()) ?? []
      return all.filter(({ subject }) => subject === 'wake-ups').map(({ severity }) => severity)
    }
    assert.deepEqual(await findings(url), ['ok'])
    assert.deepEqual(await findings(`${url}&listen=true`), ['warning'])
  })

  test('nothing is left prepared, locked or set on the connections of the pooler', async (t) => {
    const engine = await open1(t)
    await engine.enqueue([newJob({ type: 'traces' })])
    const client = new pg.Client({ connectionString: pooler.through((await postgresServer()).url) })
    await client.connect()
    const pids = new Set<number>()
    for (let look = 0; look < pooler.serverConnections * 5; look += 1) {
      const { rows } =
        await client.query(`select pg_backend_pid() as pid, current_setting('statement_timeout') as timeout,
        (select count(*)::int from pg_prepared_statements) as prepared,
        (select count(*)::int from pg_locks where pid = pg_backend_pid() and locktype = 'advisory') as locks`)
      const [{ pid, ...traces }] = rows
      pids.add(pid)
      assert.deepEqual(traces, { timeout: '0', prepared: 0, locks: 0 })
    }
    await client.end()
    const [busy] = await query<{ open: number }>(
      direct,
      `select count(*)::int as open from pg_stat_activity where state = 'idle in transaction' and query like '%${schema}%'`,
    )
    assert.equal(busy?.open, 0)
  })
})
