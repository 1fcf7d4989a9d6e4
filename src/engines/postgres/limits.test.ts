import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import type { Consumer } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate } from './module.ts'

const never = new AbortController().signal
const settings = { clock: systemClock, migrate: false }

interface Claim {
  readonly fromMs: number
  readonly untilMs: number
  readonly jobs: number
}

async function claimFor(ms: number, consumer: Consumer): Promise<readonly Claim[]> {
  const claims: Claim[] = []
  for (const endMs = systemClock.monotonicMs() + ms; systemClock.monotonicMs() < endMs; ) {
    const fromMs = systemClock.monotonicMs()
    const leases = await consumer.claim({ max: 3, waitMs: 0, signal: never })
    claims.push({ fromMs, untilMs: systemClock.monotonicMs(), jobs: leases.length })
  }
  return claims
}

test('many who claim a limited type at once never start more than its limit in any window, and the window goes on', async (test) => {
  const [perMs, max, windows] = [400, 20, 5]
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  const engines = await Promise.all([1, 2, 3].map(() => openEngine(url, settings)))
  test.after(() => Promise.all(engines.map((engine) => engine.close())))
  await engines[0]?.enqueue(Array.from({ length: 500 }, () => newJob({ type: 'limited' })))
  const types = [{ type: 'limited', leaseMs: 60_000, limit: { max, perMs } }]
  const consumers = await Promise.all(
    engines.flatMap((engine, at) => ['a', 'b'].map((name) => engine.consume({ types, worker: `${name}${at}` }))),
  )
  const claims = (await Promise.all(consumers.map((consumer) => claimFor(perMs * windows, consumer)))).flat()
  // A start lies somewhere between a claim's beginning and its end: only what lies within a window as a whole is sure to.
  for (const { fromMs } of claims) {
    const within = claims.filter((claim) => claim.fromMs >= fromMs && claim.untilMs < fromMs + perMs)
    const jobs = within.reduce((sum, claim) => sum + claim.jobs, 0)
    assert.ok(jobs <= max, `${jobs} starts in a window of ${perMs} ms, ${max} allowed`)
  }
  const [started] = await query<{ jobs: number }>(
    server.url,
    `select count(*)::int as jobs from ${schema}.jobs where status = 'processing'`,
  )
  assert.ok((started?.jobs ?? 0) > max, `${started?.jobs} starts in ${windows} windows of ${max}`)
})

test('starts that a clock has put into the future hold a type up for one window, not until that time', async (test) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  const engine = await openEngine(url, settings)
  test.after(() => engine.close())
  await engine.enqueue([newJob({ type: 'limited' }), newJob({ type: 'limited' })])
  const limit = { max: 1, perMs: 500 }
  const consumer = await engine.consume({ types: [{ type: 'limited', leaseMs: 60_000, limit }], worker: 'w' })
  assert.equal((await consumer.claim({ max: 2, waitMs: 0, signal: never })).length, 1)
  await query(server.url, `update ${schema}.millrace_limits set started_at = array[now() + interval '1 hour']`)
  assert.equal((await consumer.claim({ max: 2, waitMs: 0, signal: never })).length, 0)
  assert.equal((await consumer.claim({ max: 2, waitMs: 30_000, signal: never })).length, 1)
})

test('a claim does not leave out a limited type because of what this engine still writes about the last one', async (test) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  const engine = await openEngine(url, settings)
  test.after(() => engine.close())
  await query(
    server.url,
    `create function ${schema}.wait() returns trigger language plpgsql as $$ begin perform pg_sleep(0.2); return new; end $$;
     create trigger slow before update on ${schema}.millrace_limits for each row execute function ${schema}.wait()`,
  )
  const urgent = ['limited', 'limited', 'limited'].map((type) => newJob({ type, priority: 1 }))
  await engine.enqueue([...urgent, newJob({ type: 'free', priority: 9 })])
  const limited = { type: 'limited', leaseMs: 60_000, limit: { max: 10, perMs: 60_000 } }
  const consumer = await engine.consume({ types: [limited, { type: 'free', leaseMs: 60_000 }], worker: 'w' })
  const claimed: string[] = []
  for (let n = 0; n < 4; n += 1) {
    for (const { job } of await consumer.claim({ max: 1, waitMs: 0, signal: never })) claimed.push(job.type)
    // The turn in which the starts of the last claim are moved.
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(claimed, ['limited', 'limited', 'limited', 'free'])
})
