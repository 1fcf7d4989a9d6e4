import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import type { Engine, SubscribedType } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import { statementsOf } from './tenant-slots.ts'

const signal = new AbortController().signal
const SETTINGS = { clock: systemClock, migrate: true }
const slots = { max: 2, by: 'tenant' } as const

const files = tempFiles()
let file: string
beforeEach(() => {
  file = files.next()
})

const work = (engine: Engine, types: readonly SubscribedType[], ageingMs?: number) =>
  engine.consume({ types, worker: 'test:1:1', ...(ageingMs !== undefined && { ageingMs }) })
const sync: SubscribedType = { type: 'sync', leaseMs: 60_000, slots }
const jobs = (count: number, fields: Parameters<typeof newJob>[0]) =>
  Array.from({ length: count }, () => newJob({ type: 'sync', ...fields }))

test('a claim seeks from tenant to tenant and never reads the jobs of a full one', async () => {
  const engine = await openEngine(`sqlite:${file}`, SETTINGS)
  const consumer = await work(engine, [sync])
  await engine.enqueue(jobs(4, { tenant: { orgId: 'ann' } }))
  assert.equal((await consumer.claim({ max: 9, waitMs: 0, signal })).length, 2)
  await engine.close()
  const handle = new DatabaseSync(file)
  const sought = {
    tenant: /\(status=\? AND <expr>>\? AND <expr><\?\)/,
    rank: /\(status=\? AND <expr>=\? AND priority>\?\)/,
    jobs: /\(status=\? AND <expr>=\? AND priority=\? AND scheduled_at<\?\)/,
    running: /\(status=\?\)/,
  }
  const statements = statementsOf('sync')
  for (const name of ['tenant', 'rank', 'jobs', 'running'] as const) {
    const plan = handle.prepare(`EXPLAIN QUERY PLAN ${statements[name]}`).all()
    assert.equal(plan.length, 1, JSON.stringify(plan))
    assert.match(String(plan[0]?.detail), /^SEARCH job_queue USING INDEX idx_job_queue_slots_sync/)
    assert.match(String(plan[0]?.detail), sought[name])
  }
  handle.close()
})

test('where Millrace may not migrate, the claim is refused with the statement that creates the index', async () => {
  await (await openEngine(`sqlite:${file}`, SETTINGS)).close()
  const engine = await openEngine(`sqlite:${file}`, { ...SETTINGS, migrate: false })
  await engine.enqueue(jobs(1, {}))
  const consumer = await work(engine, [sync])
  const failed = await consumer.claim({ max: 1, waitMs: 0, signal }).then(
    () => assert.fail('it was not refused'),
    (error: unknown) => error,
  )
  assert.ok(failed instanceof Error && 'code' in failed)
  assert.equal(failed.code, 'ERR_SCHEMA_MISSING')
  const [, statement = ''] = failed.message.match(/run: (CREATE INDEX .*)$/) ?? []
  const handle = new DatabaseSync(file)
  handle.exec(statement)
  handle.close()
  assert.equal((await consumer.claim({ max: 1, waitMs: 0, signal })).length, 1)
  await engine.close()
})

test('a tenant that another program wrote in its own way counts as none', async () => {
  const engine = await openEngine(`sqlite:${file}`, SETTINGS)
  const handle = new DatabaseSync(file)
  const insert = handle.prepare(
    `INSERT INTO job_queue (id, type, payload, scheduled_at, created_at, updated_at, tenant) VALUES (?, 'sync', '1', ?, ?, ?, ?)`,
  )
  const now = toIso(systemClock.nowMs() - 1_000)
  for (const [index, tenant] of [null, 'acme', '{}', '[1]', '{"orgId":null}', '"x"'].entries()) {
    insert.run(`job-${index}`, now, now, now, tenant)
  }
  handle.close()
  const consumer = await work(engine, [sync])
  assert.equal((await consumer.claim({ max: 9, waitMs: 0, signal })).length, 2)
  await engine.close()
})

test('more tenants than one claim looks at all get their turn', async () => {
  const engine = await openEngine('sqlite::memory:', SETTINGS)
  const tenants = Array.from({ length: 700 }, (_, index) => ({ orgId: `org-${index}` }))
  await engine.enqueue(tenants.flatMap((tenant) => jobs(3, { tenant })))
  const consumer = await work(engine, [sync])
  const started = new Map<string, number>()
  for (let claimed = 0; claimed < 1_400; ) {
    const leases = await consumer.claim({ max: 100, waitMs: 0, signal })
    assert.ok(leases.length > 0, `only ${claimed} were handed out`)
    claimed += leases.length
    for (const { job } of leases) {
      const orgId = job.tenant?.orgId ?? ''
      started.set(orgId, (started.get(orgId) ?? 0) + 1)
    }
    if (claimed === 700) assert.ok(started.size > 500, `only ${started.size} tenants had a turn`)
  }
  assert.deepEqual([started.size, new Set(started.values())], [700, new Set([2])])
  assert.deepEqual(await consumer.claim({ max: 100, waitMs: 0, signal }), [])
  await engine.close()
})

test('ageing holds within a tenant', async () => {
  const engine = await openEngine('sqlite::memory:', SETTINGS)
  const tenant = { orgId: 'ann' }
  const old = newJob({ type: 'sync', tenant, priority: 9, runAtMs: systemClock.nowMs() - 60_000 })
  await engine.enqueue([...jobs(3, { tenant, priority: 5 }), old])
  const [strict, aged] = [await work(engine, [sync]), await work(engine, [sync], 10_000)]
  const first = await strict.claim({ max: 1, waitMs: 0, signal })
  assert.notEqual(first[0]?.job.id, old.id)
  assert.equal((await aged.claim({ max: 1, waitMs: 0, signal }))[0]?.job.id, old.id)
  await engine.close()
})

test('against other types a type counts with its most urgent job that may start', async () => {
  const engine = await openEngine('sqlite::memory:', SETTINGS)
  const [busy, idle] = [{ orgId: 'busy' }, { orgId: 'idle' }]
  const consumer = await work(engine, [sync, { type: 'other', leaseMs: 60_000 }])
  await engine.enqueue(jobs(1, { tenant: busy }))
  await consumer.claim({ max: 1, waitMs: 0, signal })
  await engine.enqueue([
    ...Array.from({ length: 5 }, () => newJob({ type: 'other', priority: 5 })),
    ...jobs(1, { tenant: idle, priority: 10 }),
    ...jobs(1, { tenant: busy, priority: 1 }),
  ])
  const order = (await consumer.claim({ max: 3, waitMs: 0, signal })).map(({ job }) => job.tenant?.orgId ?? job.type)
  assert.deepEqual(order, ['idle', 'busy', 'other'])
  await engine.close()
})
