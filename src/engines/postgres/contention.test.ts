import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { type PostgresServer, query, schemaUrl, startPostgres } from '../../../test/servers/postgres.ts'
import type { Consumer, Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import type { NewJob } from '../../job/job.ts'
import { systemClock } from '../../time/clock.ts'
import { PostgresEngine } from './engine.ts'
import { migrate } from './module.ts'

const never = new AbortController().signal
const settings = { clock: systemClock, migrate: false }
const complete = { kind: 'complete', result: '1', durationMs: 1 } as const
const release = { kind: 'release', delayMs: 0, reason: 'again' } as const
const seed = Number(process.env.SEED ?? Date.now() % 100_000)
let server: PostgresServer

before(async () => {
  server = await startPostgres()
})
after(() => server.stop())

/** The same numbers for the same seed. */
function numbers(start: number): () => number {
  let state = start
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function shuffled<Item>(items: readonly Item[], random: () => number): readonly Item[] {
  return items
    .map((item) => [random(), item] as const)
    .sort(([one], [other]) => one - other)
    .map(([, item]) => item)
}

/** A batch as a flow is: jobs of shared keys and latest keys in any order, each third one after another of the batch. */
function batch(random: () => number): readonly NewJob[] {
  const kind = Math.floor(random() * 3)
  const names = shuffled(['a', 'b', 'c', 'd'], random)
  const jobs = names.map((name, at) => {
    const isLatest = kind === 1 || (kind === 2 && at % 2 === 0)
    return newJob({
      type: 'shared',
      priority: 1 + Math.floor(random() * 3),
      ...(isLatest ? { latest: { key: name, seq: null } } : { key: name }),
    })
  })
  const [first] = jobs
  if (first === undefined || random() > 0.3) return jobs
  return [...jobs, newJob({ type: 'shared', after: { ids: [first.id], ifDead: 'wait' } })]
}

async function enqueueMany(engine: Engine, rounds: number, random: () => number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await engine.enqueue(batch(random))
}

async function settleUntil(consumer: Consumer, random: () => number, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const leases = await consumer.claim({ max: 10, waitMs: 10, signal: never })
    const settlements = shuffled(leases, random).map((lease) => ({
      lease,
      outcome: random() < 0.8 ? complete : release,
    }))
    await consumer.settle(settlements)
  }
}

describe('who gets in each other’s way', () => {
  test('batches of shared keys and latest keys in any order never lock each other out', async () => {
    const before = await deadlocks()
    await contend({ rounds: 40, settlers: 0 })
    assert.equal((await deadlocks()) - before, 0, `deadlocks with SEED=${seed}`)
  })

  test('nor is any of them rejected while jobs of the same keys are completed and released', async () => {
    await contend({ rounds: 30, settlers: 4 })
  })

  test('a page of replays is done except for the letter whose key another transaction takes meanwhile', async (t) => {
    const { url } = schemaUrl(server)
    await migrate(url, settings)
    const engine = await openEngine(url, settings)
    const client = new pg.Client({ connectionString: url })
    t.after(() => Promise.all([client.end(), engine.close()]))
    const consumer = await engine.consume({ types: [{ type: 'shared', leaseMs: 60_000 }], worker: 'w' })
    const ids = ['a', 'b', 'c'].map((key) => newJob({ type: 'shared', key }))
    await engine.enqueue(ids)
    const error = { name: 'Error', code: null, message: 'x', stack: null }
    const leases = await consumer.claim({ max: 3, waitMs: 0, signal: never })
    await consumer.settle(leases.map((lease) => ({ lease, outcome: { kind: 'dead', error } as const })))

    await client.connect()
    await client.query('BEGIN')
    await engine.enqueue([newJob({ type: 'shared', key: 'b' })], client)
    const replaying = engine.deadLetters?.requeue(
      ids.map(({ id }) => id),
      { who: 'test', reason: 'fixed' },
    )
    await blocked(client)
    await client.query('COMMIT')
    assert.deepEqual(await replaying, [true, false, true])
    assert.deepEqual((await engine.counts()).shared, { ready: 3, delayed: 0, inProgress: 0, completed: 0, dead: 1 })
  })

  for (const isolation of ['serializable', 'repeatable read']) {
    test(`a database that is ${isolation} by default rejects nothing, by URL and by a pool of the user's own`, async () => {
      const name = `by_default_${isolation.replace(' ', '_')}`
      await query(server.url, `create database ${name}`)
      await query(server.url, `alter database ${name} set default_transaction_isolation = '${isolation}'`)
      const url = server.url.replace(/\/postgres$/, `/${name}`)
      await migrate(url, settings)
      const pool = new pg.Pool({ connectionString: url, max: 8 })
      const own = await PostgresEngine.connect({ pool }, settings)
      for (const engine of [await openEngine(url, settings), own]) {
        const types = [{ type: 'shared', leaseMs: 60_000 }]
        const consumers = await Promise.all([1, 2].map((at) => engine.consume({ types, worker: `w${at}` })))
        let over = false
        const random = numbers(seed)
        const settling = consumers.map((consumer) => settleUntil(consumer, random, () => over))
        const put = async (at: number): Promise<void> => {
          for (let n = 0; n < 30; n += 1) {
            await engine.enqueue([newJob({ type: 'shared' })])
            await engine.enqueue([newJob({ type: 'shared', key: `k${at} ${n}` })])
            await engine.enqueue([
              newJob({ type: 'shared', key: `a${at} ${n}` }),
              newJob({ type: 'shared', key: `b${at} ${n}` }),
            ])
          }
        }
        const puts = await Promise.allSettled([1, 2, 3, 4].map(put))
        over = true
        const settled = await Promise.allSettled(settling)
        const reasons = [...puts, ...settled].flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []))
        assert.deepEqual(reasons, [], `SEED=${seed}`)
        await engine.close()
      }
      await pool.end()
      const [found] = await query<{ n: number }>(
        server.url,
        `select xact_rollback::int as n from pg_stat_database where datname = '${name}'`,
      )
      assert.equal(found?.n, 0, 'transactions that had to be repeated')
    })
  }
})

/** Rejects when any of those who enqueue or settle is rejected. */
async function contend({ rounds, settlers }: { readonly rounds: number; readonly settlers: number }): Promise<void> {
  const { url } = schemaUrl(server)
  await migrate(url, settings)
  const random = numbers(seed)
  const engines = await Promise.all([1, 2, 3, 4].map(() => openEngine(url, settings)))
  const types = [{ type: 'shared', leaseMs: 60_000 }]
  const consumers = await Promise.all(
    engines.slice(0, settlers).map((engine, at) => engine.consume({ types, worker: `w${at}` })),
  )
  let over = false
  const settling = Promise.all(consumers.map((consumer) => settleUntil(consumer, random, () => over)))
  const enqueuing = Promise.all(engines.flatMap((engine) => [1, 2].map(() => enqueueMany(engine, rounds, random))))
  const [enqueued, settled] = await Promise.allSettled([enqueuing.finally(() => (over = true)), settling])
  // A connection tells its deadlocks when it ends.
  await Promise.all(engines.map((engine) => engine.close()))
  for (const end of [enqueued, settled]) if (end.status === 'rejected') throw end.reason
}

/** Resolves when a statement waits for what this transaction has stored. */
async function blocked(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query(
      'SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))',
    )
    if (rows.length > 0) return
    await systemClock.sleep(10)
  }
}

async function deadlocks(): Promise<number> {
  const rows = await query<{ n: number }>(
    server.url,
    `select deadlocks::int as n from pg_stat_database where datname = 'postgres'`,
  )
  return rows[0]?.n ?? 0
}
