import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { causesBothWays } from '../../../test/fixtures/causes-both-ways.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import type { Consumer, Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import type { Lease } from '../../engine/outcome.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate } from './module.ts'

const never = new AbortController().signal
const settings = { clock: systemClock, migrate: true }
const complete = { kind: 'complete', result: '1', durationMs: 1 } as const
let [url, schema] = ['', '']
let engine: Engine
let consumer: Consumer

/** As psql would. */
const psql = <Row>(text: string): Promise<readonly Row[]> => query<Row>(url, text.replaceAll('@', `${schema}.`))
const take = (max = 10): Promise<readonly Lease[]> => consumer.claim({ max, waitMs: 0, signal: never })

before(async () => {
  const server = await postgresServer()
  ;({ url, schema } = schemaUrl(server))
  await migrate(url, settings)
  engine = await openEngine(url, settings)
  consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w1' })
})

after(async () => {
  await engine.close()
  await dropSchema(url, schema)
})

describe('rows that other programs write into Postgres', () => {
  test('a plain INSERT of a type and a payload is a job, and a waiting worker notices it by itself', async () => {
    const claim = consumer.claim({ max: 1, waitMs: 60_000, signal: never })
    // By then the claim has looked and waits.
    for (let look = 0; look < 5; look += 1) await engine.ping()
    await psql(`insert into @jobs (type, payload) values ('greet', '{"name": "Ada"}')`)
    const [lease] = await claim
    assert.ok(lease, 'the poll alone did not find the row')
    assert.equal(lease.job.payload, '{"name": "Ada"}')
    assert.deepEqual([lease.attempt, lease.job.attempts, lease.job.priority], [1, 3, 5])
    assert.deepEqual(await consumer.settle([{ lease, outcome: complete }]), [])
    assert.equal((await engine.inspector?.find([lease.job.id]))?.[0]?.state, 'completed')
  })

  test('their dead letters are counted by the causes that the letters show', async () => {
    const record = `{"name":"TypeError","code":"E1","message":"no invoice 5","stack":"at`
    await psql(`insert into @jobs (id, type, status, completed_at, fail_code, fail_reason, error_record) values
      ('silent', 'dead', 'failed', now(), null, null, null), ('code', 'dead', 'failed', now(), 'E4', null, null),
      ('text', 'dead', 'failed', now(), null, 'no invoice 4', null), ('more', 'dead', 'failed', now(), null, 'no invoice 6', null),
      ('record', 'dead', 'failed', now(), 'x', 'y', '${record} 1"}'), ('other', 'dead', 'failed', now(), null, null, '${record} 2"}'),
      ('short', 'dead', 'failed', null, null, null, '{"name":"Odd","message":"m"}')`)
    const { counted, listed } = await causesBothWays(engine)
    assert.deepEqual(counted, listed)
    assert.deepEqual([counted.seen, counted.groups.map(({ count }) => count).sort()], [7, [1, 1, 1, 2, 2]])
    await psql(`delete from @jobs where type = 'dead'`)
  })

  // E41 E42 X178
  test('next_earliest_run_at holds a row back, and a claim clears it and marks the row processing', async () => {
    await psql(`insert into @jobs (id, type, next_earliest_run_at) values
      ('later', 'greet', now() + interval '1 hour'), ('now', 'greet', now() - interval '1 second')`)
    const leases = await take()
    assert.deepEqual(
      leases.map(({ job }) => job.id),
      ['now'],
    )
    const rows = await psql<Record<string, unknown>>(
      `select id, status, locked_by, attempt_count, next_earliest_run_at is null as cleared,
         lease_expires_at > now() as leased, last_heartbeat_at is not null as beaten from @jobs where id in ('now', 'later') order by id`,
    )
    assert.deepEqual(rows[1], {
      id: 'now',
      status: 'processing',
      locked_by: 'w1',
      attempt_count: 1,
      cleared: true,
      leased: true,
      beaten: true,
    })
    assert.equal(rows[0]?.status, 'queued')
    await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
    await psql(`delete from @jobs where id = 'later'`)
  })

  // I5
  test('a row put back with its attempts used up is buried, not started once more', async () => {
    await psql(`insert into @jobs (id, type, attempt_count) values ('worn', 'greet', 3)`)
    assert.deepEqual(await take(), [])
    const [view] = (await engine.inspector?.find(['worn'])) ?? []
    assert.deepEqual([view?.state, view?.attempt, view?.error?.code], ['dead_letter', 3, 'attempts_used'])
  })

  // X171 I3
  test('taking a job over by hand fences out its holder, though the token is unchanged', async () => {
    await engine.enqueue([newJob()])
    const [lease] = await take()
    assert.ok(lease)
    await psql(`update @jobs set locked_by = 'somebody' where id = '${lease.job.id}'`)
    assert.equal((await consumer.settle([{ lease, outcome: complete }])).length, 1)
    assert.equal((await consumer.renew([lease], 1_000)).length, 1)
    await psql(`delete from @jobs where id = '${lease.job.id}'`)
  })

  // X173
  test('a row that is processing without a lease is found by the reaper after five minutes of silence', async () => {
    await psql(`insert into @jobs (id, type, status, updated_at, created_at) values
      ('silent', 'greet', 'processing', now() - interval '6 minutes', now() - interval '1 hour'),
      ('fresh', 'greet', 'processing', now(), now())`)
    const reaper = await engine.consume({ types: 'every', worker: 'reaper' })
    const found = await reaper.claim({ max: 10, waitMs: 0, signal: never, from: 'expired' })
    assert.deepEqual(
      found.map(({ job }) => job.id),
      ['silent'],
    )
    await psql(`delete from @jobs where id in ('silent', 'fresh')`)
  })

  // E26 E27 E29 E31
  test('history is rows of job_events in the form of job tables, and its events are read as history', async () => {
    await engine.enqueue([newJob({ id: 'told' })])
    const [lease] = await take()
    assert.ok(lease)
    const error = { name: 'Error', code: 'E_X', message: 'nul \0 and half a pair \ud800', stack: null }
    assert.deepEqual(await consumer.settle([{ lease, outcome: { kind: 'dead', error } }]), [])
    const rows = await psql<{ data: Record<string, unknown> }>(
      `select data from @job_events where job_id = 'told' order by seq`,
    )
    assert.deepEqual(
      rows.map(({ data }) => [data.type, data.table, data.attempt, data.worker]),
      [
        ['failed', 'jobs', 1, 'w1'],
        ['dead', 'jobs', 1, 'w1'],
      ],
    )
    assert.match(String(rows[0]?.data.at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    await psql(`insert into @job_events (job_id, data) values ('told', '{"type": "reaper:requeued", "table": "jobs",
      "at": "2026-01-01T00:00:00.000Z", "details": {"reason": "lease_expired", "locked_by": "w9"}}')`)
    const last = (await engine.inspector?.history('told'))?.at(-1)
    assert.deepEqual([last?.name, last?.detail], ['expired', { reason: 'lease_expired', locked_by: 'w9' }])
  })

  test('a row edited into nonsense stops neither the claim of others nor those who look', async () => {
    await psql(`insert into @jobs (id, type, payload, tenant, options, max_attempts, run_at) values
      ('odd', 'greet', 'no json', '"text"', '[]', -5, '-infinity')`)
    await engine.enqueue([newJob({ id: 'good' })])
    const leases = await take()
    assert.deepEqual(
      leases.map(({ job }) => job.id),
      ['odd', 'good'],
    )
    assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))), [])
    assert.equal(
      (await engine.inspector?.list({ limit: 100 }))?.some(({ id }) => id === 'odd'),
      true,
    )
  })
})
