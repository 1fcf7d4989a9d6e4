import assert from 'node:assert/strict'
import { test } from 'node:test'
import { existingTables, type TableFixture } from '../../test/fixtures/job-tables.ts'
import { openJobTables } from './job-tables.ts'
import { migrateTables } from './migration.ts'
import { Reaper } from './reaper.ts'

interface Column {
  readonly name: string
  readonly type: string
  readonly nullable: string
  readonly otherwise: string | null
}

async function columnsOf({ pool, schema }: TableFixture, table: string): Promise<readonly Column[]> {
  const { rows } = await pool.query<Column>(
    `select column_name as name, data_type as type, is_nullable as nullable, column_default as otherwise
     from information_schema.columns where table_schema = $1 and table_name = $2 order by ordinal_position`,
    [schema, table],
  )
  return rows
}

async function indexesOf({ pool, schema }: TableFixture): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ name: string; definition: string }>(
    'select indexname as name, indexdef as definition from pg_indexes where schemaname = $1',
    [schema],
  )
  return new Map(rows.map(({ name, definition }) => [name, definition.replaceAll(`${schema}.`, '')]))
}

const ADDED: readonly Column[] = [
  { name: 'locked_by', type: 'text', nullable: 'YES', otherwise: null },
  { name: 'lease_expires_at', type: 'timestamp with time zone', nullable: 'YES', otherwise: null },
  { name: 'last_heartbeat_at', type: 'timestamp with time zone', nullable: 'YES', otherwise: null },
  { name: 'attempt_count', type: 'integer', nullable: 'NO', otherwise: '0' },
  { name: 'max_attempts', type: 'integer', nullable: 'NO', otherwise: '3' },
  { name: 'fail_code', type: 'text', nullable: 'YES', otherwise: null },
  { name: 'fail_reason', type: 'text', nullable: 'YES', otherwise: null },
  { name: 'stage', type: 'text', nullable: 'YES', otherwise: null },
  { name: 'next_earliest_run_at', type: 'timestamp with time zone', nullable: 'YES', otherwise: null },
  { name: 'expected_duration_ms', type: 'integer', nullable: 'YES', otherwise: null },
  { name: 'started_at', type: 'timestamp with time zone', nullable: 'YES', otherwise: null },
]

// E13..E25 X175
test('existing tables get the columns and the index; their own columns, rows and indexes stay', async (t) => {
  const tables = await existingTables(t)
  await tables.insert('jobs', { id: 'a', title: 'mine' })
  const before = { jobs: await columnsOf(tables, 'jobs'), asr_jobs: await columnsOf(tables, 'asr_jobs') }
  const plan = await migrateTables(tables.pool)
  assert.equal(plan.statements.length, 5)
  for (const table of ['jobs', 'asr_jobs'] as const) {
    const had = new Set(before[table].map(({ name }) => name))
    assert.deepEqual(await columnsOf(tables, table), [...before[table], ...ADDED.filter(({ name }) => !had.has(name))])
  }
  const indexes = await indexesOf(tables)
  for (const table of ['jobs', 'asr_jobs']) {
    assert.equal(
      indexes.get(`idx_${table}_status_lease`),
      `CREATE INDEX idx_${table}_status_lease ON ${table} USING btree (status, lease_expires_at)`,
    )
  }
  assert.match(indexes.get('idx_jobs_status_heartbeat') ?? '', /\(status, last_heartbeat_at\)/)
  const row = await tables.row('jobs', 'a')
  assert.deepEqual([row.title, row.attempt_count, row.max_attempts], ['mine', 0, 3])
})

// E23 E24
test('a second time does nothing', async (t) => {
  const tables = await existingTables(t)
  await migrateTables(tables.pool)
  const before = [await columnsOf(tables, 'jobs'), await indexesOf(tables)]
  assert.deepEqual(await migrateTables(tables.pool), { statements: [] })
  assert.deepEqual([await columnsOf(tables, 'jobs'), await indexesOf(tables)], before)
})

test('a dry run says what it would do, and does not', async (t) => {
  const tables = await existingTables(t)
  const before = await columnsOf(tables, 'jobs')
  const { statements } = await migrateTables(tables.pool, { dryRun: true, tables: ['jobs'] })
  assert.deepEqual(await columnsOf(tables, 'jobs'), before)
  assert.match(statements.join('\n'), /ADD COLUMN IF NOT EXISTS "max_attempts" INT NOT NULL DEFAULT 3/)
  assert.match(statements.join('\n'), /CREATE INDEX IF NOT EXISTS "idx_jobs_status_lease" ON "jobs"/)
  await tables.pool.query(statements.join(';\n'))
  assert.deepEqual(await migrateTables(tables.pool, { tables: ['jobs'] }), { statements: [] })
})

// E26 X182
test('job_events is made where there is none, without a foreign key', async (t) => {
  const tables = await existingTables(t, 'create table jobs (id uuid primary key, status text)')
  await migrateTables(tables.pool, { tables: ['jobs'], schema: tables.schema })
  assert.deepEqual(
    (await columnsOf(tables, 'job_events')).map(({ name, type }) => [name, type]),
    [
      ['job_id', 'text'],
      ['data', 'jsonb'],
    ],
  )
  const { rows } = await tables.pool.query(
    `select 1 from pg_constraint where contype = 'f' and connamespace = $1::regnamespace`,
    [tables.schema],
  )
  assert.equal(rows.length, 0)
})

test('job_events of a second schema get their index too', async (t) => {
  const tables = await existingTables(t, 'create table jobs (id uuid primary key, status text)')
  await tables.pool.query(
    `create table public.job_events (job_id text, data jsonb);
     create index idx_job_events_reaper on public.job_events (job_id)`,
  )
  const migrating = migrateTables(tables.pool, { tables: ['jobs'], schema: tables.schema })
  await migrating.finally(() => tables.pool.query('drop table public.job_events'))
  assert.ok((await indexesOf(tables)).has('idx_job_events_reaper'))
})

// E13..E24
test('a new table has everything at once: it is claimed, finished and reaped, and later completed no further', async (t) => {
  const tables = await existingTables(t, 'select 1')
  const place = { tables: ['clips'], create: true } as const
  const { statements } = await migrateTables(tables.pool, { ...place, dryRun: true })
  assert.match(statements[0] ?? '', /^CREATE TABLE IF NOT EXISTS "clips" \(\n {2}"id" UUID PRIMARY KEY/)
  assert.deepEqual(await columnsOf(tables, 'clips'), [])
  // What the dry run prints is a script that can be run.
  await tables.pool.query(`${statements.join(';\n\n')};`)
  assert.deepEqual(await migrateTables(tables.pool, place), { statements: [] })
  const columns = new Map((await columnsOf(tables, 'clips')).map((column) => [column.name, column]))
  for (const column of ADDED) assert.deepEqual(columns.get(column.name), column)
  assert.equal(columns.size, ADDED.length + 3)
  const { insertJob, claimJob, finishJob } = openJobTables(tables.pool, { tables: ['clips'] })
  const ids: string[] = []
  for (const _ of [1, 2]) {
    const inserted = await insertJob({})
    assert.ok(inserted.ok)
    assert.ok((await claimJob(inserted.value.id, 'worker-1', 60)).ok)
    ids.push(inserted.value.id)
  }
  const [done = '', lost = ''] = ids
  assert.ok((await finishJob(done, true)).ok)
  await tables.pool.query(`update clips set lease_expires_at = now() - interval '1 minute' where id = $1`, [lost])
  assert.deepEqual(await new Reaper(tables.pool, { tables: ['clips'] }).runOnce(), {
    requeuedIds: [lost],
    failedIds: [],
  })
  await assert.rejects(tables.insert('clips', { status: 'unheard of' }), /violates check constraint/)
})

test('what cannot be completed is left as it is, with the reason', async (t) => {
  const tables = await existingTables(
    t,
    `create table jobs (id text primary key, status text);
     create table asr_jobs (id text primary key, status text, lease_expires_at timestamp);
     create table bare (id text)`,
  )
  const before = await columnsOf(tables, 'jobs')
  await assert.rejects(migrateTables(tables.pool), {
    code: 'ERR_SCHEMA_MISSING',
    message: /'asr_jobs.lease_expires_at' is timestamp without time zone, not TIMESTAMPTZ/,
  })
  assert.deepEqual(await columnsOf(tables, 'jobs'), before)
  await assert.rejects(migrateTables(tables.pool, { tables: ['absent'] }), /table 'absent' does not exist; .*--new/)
  await assert.rejects(migrateTables(tables.pool, { tables: ['bare'] }), /table 'bare' has no column status/)
})
