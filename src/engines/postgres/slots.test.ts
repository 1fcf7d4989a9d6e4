import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import type { Consumer, Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import type { Lease } from '../../engine/outcome.ts'
import { systemClock } from '../../time/clock.ts'
import type { Statement } from './database.ts'
import { migrate } from './module.ts'
import { namesIn } from './names.ts'
import { CLAIM_SLOTS } from './slots.ts'

const never = new AbortController().signal
const settings = { clock: systemClock, migrate: false }
const complete = { kind: 'complete', result: 'null', durationMs: 1 } as const
const type = 'shared'

async function scene(t: TestContext, engines = 1) {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  const opened = await Promise.all(Array.from({ length: engines }, () => openEngine(url, settings)))
  t.after(() => Promise.all(opened.map((engine) => engine.close())))
  const [engine] = opened
  assert.ok(engine)
  const consume = (max: number, on: Engine = engine): Promise<Consumer> =>
    on.consume({ types: [{ type, leaseMs: 60_000, slots: { max, by: 'tenant' } }], worker: 'w' })
  const sql = (text: string) => query<Record<string, number>>(server.url, text.replaceAll('@', `${schema}.`))
  const explain = async (statement: Statement, values: readonly unknown[]): Promise<string> => {
    const text = `EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) ${statement(namesIn(schema))}`
    const rows = await query<{ 'QUERY PLAN': string }>(server.url, text, [null, ...values])
    await sql(`update @jobs set status = 'queued', lease_token = null, locked_by = null where lease_token = 'w token'`)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }
  return { engine, engines: opened, consume, sql, explain }
}

const take = (consumer: Consumer, max: number): Promise<readonly Lease[]> =>
  consumer.claim({ max, waitMs: 0, signal: never })

const ofTenant = (orgId: string | null, count: number) =>
  Array.from({ length: count }, () => newJob({ type, tenant: orgId === null ? null : { orgId } }))

test('a claim reads no jobs of a tenant without a free slot, however many wait', async (t) => {
  const { engine, consume, sql, explain } = await scene(t)
  await engine.enqueue(ofTenant('ann', 1))
  const consumer = await consume(1)
  assert.equal((await take(consumer, 10)).length, 1)
  await sql(`insert into @jobs (id, type, payload, tenant)
    select 'many-' || n, '${type}', '{}', '{"orgId":"ann"}' from generate_series(1, 5000) as n`)
  assert.deepEqual(await take(consumer, 10), [])
  await engine.enqueue(ofTenant('ben', 1))
  const lane = [[type], [10], [60_000], [0], ['-infinity'], 10, 'w', 'w token', [null], [null], [type]]
  const plan = await explain(CLAIM_SLOTS, [...lane, [1], [true], [''], [0], ['-infinity'], [0]])
  assert.doesNotMatch(plan, /Seq Scan on jobs/, plan)
  const read = [...plan.matchAll(/idx_jobs_slots.*rows=(\d+)/g)].map(([, count]) => Number(count))
  assert.ok(read.length > 0 && Math.max(...read) <= 10, plan)
  const [lease] = await take(consumer, 10)
  assert.equal(lease?.job.tenant?.orgId, 'ben')
})

test('a job without a tenant is found behind many jobs of a tenant without a free slot', async (t) => {
  const { engine, consume, sql } = await scene(t)
  await engine.enqueue(ofTenant('ann', 1))
  const consumer = await consume(1)
  assert.equal((await take(consumer, 10)).length, 1)
  await sql(`insert into @jobs (id, type, payload, tenant)
    select 'many-' || n, '${type}', '{}', '{"orgId":"ann"}' from generate_series(1, 4500) as n`)
  await engine.enqueue(ofTenant(null, 2))
  const leases = await take(consumer, 10)
  assert.deepEqual(
    leases.map(({ job }) => job.tenant),
    [null],
  )
})

test('every one of many tenants has its turn', async (t) => {
  const { engine, consume } = await scene(t)
  const tenants = Array.from({ length: 250 }, (_, n) => `t${n}`)
  await engine.enqueue(tenants.flatMap((tenant) => ofTenant(tenant, 2)))
  const consumer = await consume(1)
  const held = new Set<string>()
  for (let claims = 0; held.size < tenants.length && claims < 20; claims += 1) {
    for (const { job } of await take(consumer, 100)) {
      assert.ok(job.tenant && !held.has(job.tenant.orgId), 'one slot for each')
      held.add(job.tenant.orgId)
    }
  }
  assert.equal(held.size, tenants.length)
  assert.deepEqual(await take(consumer, 100), [])
})

test('many who claim and settle at once never hold more of a tenant than it has slots', async (t) => {
  const { engines, consume, sql } = await scene(t, 3)
  const [max, jobs] = [2, 120]
  await engines[0]?.enqueue(['ann', 'ben', null].flatMap((tenant) => ofTenant(tenant, jobs / 3)))
  const consumers = await Promise.all([...engines, ...engines].map((engine) => consume(max, engine)))
  const running = new Map<string, number>()
  let done = 0
  const work = async (consumer: Consumer): Promise<void> => {
    while (done < jobs) {
      for (const lease of await take(consumer, 3)) {
        const name = lease.job.tenant?.orgId ?? ''
        const count = (running.get(name) ?? 0) + 1
        running.set(name, count)
        assert.ok(count <= max, `${count} jobs of '${name}' at once`)
        await systemClock.sleep(1)
        running.set(name, (running.get(name) ?? 0) - 1)
        assert.deepEqual(await consumer.settle([{ lease, outcome: complete }]), [])
        done += 1
      }
    }
  }
  await Promise.all(consumers.map(work))
  const [row] = await sql(`select count(*)::int as completed from @jobs where status = 'completed'`)
  assert.equal(row?.completed, jobs)
})
