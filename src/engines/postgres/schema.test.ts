import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { type PostgresServer, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { leadershipOf, pausesOf, presenceOf } from '../../engine/capability-checks.ts'
import { openEngine } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate, planMigrations } from './module.ts'

const settings = { clock: systemClock, migrate: true }
let server: PostgresServer

before(async () => {
  server = await postgresServer()
})

interface Column {
  readonly column_name: string
  readonly data_type: string
  readonly is_nullable: 'YES' | 'NO'
  readonly column_default: string | null
}

function columnsOf(schema: string, table = 'jobs'): Promise<readonly Column[]> {
  return query<Column>(
    server.url,
    `select column_name, data_type, is_nullable, column_default from information_schema.columns
     where table_schema = $1 and table_name = $2 order by ordinal_position`,
    [schema, table],
  )
}

async function indexesOf(schema: string): Promise<ReadonlyMap<string, string>> {
  const rows = await query<{ indexname: string; indexdef: string }>(
    server.url,
    'select indexname, indexdef from pg_indexes where schemaname = $1',
    [schema],
  )
  return new Map(rows.map((row) => [row.indexname, row.indexdef]))
}

/** E13 to E22, as information_schema tells them. */
const LEASE_COLUMNS: readonly (readonly [
  name: string,
  type: string,
  nullable: 'YES' | 'NO',
  byDefault: string | null,
])[] = [
  ['locked_by', 'text', 'YES', null],
  ['lease_expires_at', 'timestamp with time zone', 'YES', null],
  ['last_heartbeat_at', 'timestamp with time zone', 'YES', null],
  ['attempt_count', 'integer', 'NO', '0'],
  ['max_attempts', 'integer', 'NO', '3'],
  ['fail_code', 'text', 'YES', null],
  ['fail_reason', 'text', 'YES', null],
  ['stage', 'text', 'YES', null],
  ['next_earliest_run_at', 'timestamp with time zone', 'YES', null],
  ['expected_duration_ms', 'integer', 'YES', null],
]

async function assertLeaseColumns(schema: string): Promise<void> {
  const columns = await columnsOf(schema)
  for (const [name, type, nullable, byDefault] of LEASE_COLUMNS) {
    const found = columns.find((column) => column.column_name === name)
    assert.deepEqual([found?.data_type, found?.is_nullable, found?.column_default], [type, nullable, byDefault], name)
  }
}

const refusal = (code: string) => (error: unknown) => error instanceof EngineError && error.code === code

describe('the schema of Postgres', () => {
  // E13 E14 E15 E16 E17 E18 E19 E20 E21 E22 E23 X005 X175
  test('a new table has the columns of job tables with their types and defaults, and its index by name', async () => {
    const { url, schema } = schemaUrl(server)
    await migrate(url, settings)
    await assertLeaseColumns(schema)
    const index = (await indexesOf(schema)).get('idx_jobs_status_lease')
    assert.match(index ?? '', /\(status, lease_expires_at\) WHERE \(status = 'processing'::text\)$/)
  })

  // E23
  test('migrating twice, and twice at once, changes nothing more', async () => {
    const { url, schema } = schemaUrl(server)
    await Promise.all([migrate(url, settings), migrate(url, settings)])
    const before = [await columnsOf(schema), await indexesOf(schema)]
    await migrate(url, settings)
    assert.deepEqual([await columnsOf(schema), await indexesOf(schema)], before)
    assert.deepEqual((await planMigrations(url, settings)).pending, [])
  })

  // E25 X182
  test('a table that was there before keeps its columns, rows and indexes, and its rows are not run', async () => {
    const { url, schema } = schemaUrl(server)
    await query(
      server.url,
      `create schema ${schema};
       create table ${schema}.jobs (id uuid primary key default gen_random_uuid(), status text not null default 'queued',
         last_heartbeat_at timestamptz, owner text not null default 'ann', payload jsonb, created_at timestamptz not null default now());
       create index jobs_beat on ${schema}.jobs (status, last_heartbeat_at);
       create table ${schema}.job_events (job_id uuid not null, data jsonb not null);
       insert into ${schema}.jobs (owner, payload) values ('bob', '{"a":1}');`,
    )
    const own = (await columnsOf(schema)).map((column) => column.column_name)
    await migrate(url, settings)
    await assertLeaseColumns(schema)
    const columns = await columnsOf(schema)
    assert.deepEqual(
      columns.slice(0, own.length).map((column) => column.column_name),
      own,
    )
    assert.ok((await indexesOf(schema)).has('jobs_beat'))
    const engine = await openEngine(url, settings)
    try {
      assert.deepEqual(await engine.counts(), {})
      // Ids of type uuid: the same bits as the ULID, so that repeating is harmless.
      const job = newJob({ type: 'mail' })
      const [receipt] = await engine.enqueue([job])
      assert.match(receipt?.id ?? '', /^[0-9a-f]{8}-/)
      assert.deepEqual(await engine.enqueue([job]), [{ id: receipt?.id, status: 'duplicate' }])
      const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'w' })
      const [lease] = await consumer.claim({ max: 5, waitMs: 0, signal: new AbortController().signal })
      assert.ok(lease)
      assert.equal(lease.job.id, receipt?.id)
      const error = { name: 'Error', code: null, message: 'no', stack: null }
      assert.deepEqual(await consumer.settle([{ lease, outcome: { kind: 'dead', error } }]), [])
      const names = (await engine.inspector?.history(lease.job.id))?.map(({ name }) => name)
      assert.deepEqual(names, ['enqueued', 'started', 'failed', 'dead'])
    } finally {
      await engine.close()
    }
    assert.deepEqual(await query(server.url, `select owner from ${schema}.jobs where type is null`), [{ owner: 'bob' }])
  })

  test('a newer schema ends claims and enqueues of a running process, and lets it settle what it holds', async () => {
    const { url, schema } = schemaUrl(server)
    await migrate(url, settings)
    const engine = await openEngine(url, settings)
    after(() => engine.close())
    await engine.enqueue([newJob(), newJob()])
    const consumer = await engine.consume({ types: [{ type: newJob().type, leaseMs: 60_000 }], worker: 'one' })
    const claim = () => consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
    const [lease] = await claim()
    assert.ok(lease)
    await query(server.url, `insert into ${schema}.millrace_schema values (99, 'later', now())`)
    const isRefused = async (call: () => Promise<unknown>): Promise<boolean> =>
      call().then(
        () => false,
        (error: unknown) => refusal('ERR_SCHEMA_NEWER')(error),
      )
    const untilMs = systemClock.monotonicMs() + 10_000
    while (!(await isRefused(() => engine.enqueue([newJob()])))) {
      assert.ok(systemClock.monotonicMs() < untilMs, 'enqueue still answers')
      await systemClock.sleep(50)
    }
    await assert.rejects(claim(), refusal('ERR_SCHEMA_NEWER'))
    assert.deepEqual(await consumer.renew([lease], 60_000), [])
    const outcome = { kind: 'complete', result: 'null', durationMs: 1 } as const
    assert.deepEqual(await consumer.settle([{ lease, outcome }]), [])
  })

  test('opening never migrates: it says what to run, and a newer schema is refused', async () => {
    const { url, schema } = schemaUrl(server)
    const plan = await planMigrations(url, settings)
    assert.equal(plan.version, 0)
    assert.match(plan.pending[0]?.sql ?? '', /CREATE TABLE IF NOT EXISTS/)
    await assert.rejects(openEngine(url, settings), refusal('ERR_SCHEMA_MISSING'))
    await assert.rejects(openEngine(url, settings), /millrace migrate/)
    assert.deepEqual(await columnsOf(schema), [])
    await migrate(url, settings)
    await query(server.url, `insert into ${schema}.millrace_schema values (99, 'later', now())`)
    await assert.rejects(openEngine(url, settings), refusal('ERR_SCHEMA_NEWER'))
    await assert.rejects(migrate(url, settings), refusal('ERR_SCHEMA_NEWER'))
  })

  test('what the dry run prints is what a person can run by hand', async () => {
    const { url, schema } = schemaUrl(server)
    const { pending } = await planMigrations(`${url}&grant=postgres`, settings)
    assert.deepEqual([pending[0]?.name, pending.at(-1)?.name], ['jobs', 'rights of postgres'])
    for (const { sql } of pending) await query(server.url, sql)
    await assertLeaseColumns(schema)
    assert.deepEqual((await planMigrations(url, settings)).pending, [])
    const engine = await openEngine(url, settings)
    assert.deepEqual(
      (await engine.diagnose?.({ deep: true }))
        ?.filter(({ subject }) => subject === 'schema')
        .map(({ severity }) => severity),
      ['ok'],
    )
    await engine.close()
    // Someone who runs it once more changes nothing.
    for (const { sql } of pending) await query(server.url, sql)
    await (await openEngine(url, settings)).close()
  })

  test('the owner of a schema migrates without the right to create another', async () => {
    const { url, schema } = schemaUrl(server)
    const role = `${schema}_worker`
    await query(server.url, `create role ${role} login; create schema ${schema} authorization ${role}`)
    const theirs = url.replace('postgres@', `${role}@`)
    await migrate(theirs, settings)
    await (await openEngine(theirs, settings)).close()
    await query(server.url, `drop schema ${schema} cascade; drop role ${role}`)
  })

  test('of five who migrate at once one does, and the others say that nothing was left to do', async () => {
    const { url } = schemaUrl(server)
    const plans = await Promise.all(Array.from({ length: 5 }, () => migrate(url, settings)))
    const done = plans.map(({ version, latest, pending }) => `${version} to ${latest}: ${pending.length}`).sort()
    const last = plans[0]?.latest ?? 0
    assert.deepEqual(done, [`0 to ${last}: ${last}`, ...Array(4).fill(`${last} to ${last}: 0`)])
  })

  test('a worker of the granted role can work and can change neither the schema nor the audit', async () => {
    const { url, schema } = schemaUrl(server)
    const role = `${schema}_worker`
    await query(server.url, `create role ${role} login`)
    await migrate(`${url}&grant=${role}`, settings)
    const theirs = url.replace('postgres@', `${role}@`)
    const engine = await openEngine(theirs, settings)
    try {
      await engine.enqueue([
        newJob({ type: 'mail' }),
        newJob({ type: 'mail', key: 'k' }),
        newJob({ type: 'mail', latest: { key: 'l', seq: null } }),
      ])
      const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'w' })
      const leases = await consumer.claim({ max: 5, waitMs: 0, signal: new AbortController().signal })
      const error = { name: 'Error', code: null, message: 'no', stack: null }
      assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: { kind: 'dead', error } }))), [])
      assert.deepEqual(await engine.deadLetters?.discard([leases[0]?.job.id ?? ''], { who: 'ann', reason: 'test' }), [
        true,
      ])
      const letter = leases[1]?.job.id ?? ''
      await assert.rejects(
        Promise.resolve(engine.deadLetters?.remove([letter], { who: 'ann', reason: 'test' }, { erase: true })),
        { code: 'ERR_STORAGE_READONLY', message: /rewrites the audit.*as the owner of the tables.*nothing was erased/ },
      )
      assert.equal((await engine.inspector?.find([letter]))?.[0]?.state, 'dead_letter')
      await leadershipOf(engine).campaign('keeper', 'me', 1_000)
      const beat = { type: 'mail', instance: 'w', status: 'RUNNING', atMs: systemClock.nowMs() } as const
      await presenceOf(engine).beat([{ ...beat, lastJobAtMs: null, lag: null, stoppingSinceMs: null }], 1_000)
      await presenceOf(engine).gone('w', ['mail'])
      assert.equal(await pausesOf(engine).pause('mail', { who: 'ann', reason: 'test' }), true)
      assert.equal(await pausesOf(engine).resume('mail'), true)
    } finally {
      await engine.close()
    }
    for (const forbidden of [
      `alter table ${schema}.jobs add column x int`,
      `drop table ${schema}.jobs`,
      `create table ${schema}.y (z int)`,
      `delete from ${schema}.millrace_audit`,
      `update ${schema}.millrace_schema set version = 0`,
    ]) {
      await assert.rejects(query(theirs, forbidden), { code: '42501' }, forbidden)
    }
    // Not even the owner rewrites the audit.
    await assert.rejects(query(server.url, `delete from ${schema}.millrace_audit`), /append-only/)
  })
})

after(async () => {
  // A server that was given to the tests is left as it was found.
  if (server.restart !== null) return
  const found = await query<{ name: string }>(
    server.url,
    `select nspname as name from pg_namespace where nspname like 'case_${process.pid}_%'`,
  )
  for (const { name } of found)
    await query(server.url, `drop schema ${name} cascade; drop role if exists ${name}_worker`)
})
