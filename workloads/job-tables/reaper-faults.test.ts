import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { jobTables, type TableFixture } from '../../test/fixtures/job-tables.ts'
import { capturedLog } from '../../test/fixtures/log-lines.ts'
import { tcpProxy } from '../../test/fixtures/tcp-proxy.ts'
import type { Database } from './database.ts'
import { PASS_MAX, Reaper } from './reaper.ts'

async function manyExpired({ pool }: TableFixture, table: string, count: number, attempts: number): Promise<void> {
  await pool.query(
    `insert into ${table} (id, status, locked_by, attempt_count, lease_expires_at)
     select n, 'processing', 'worker-' || n, $2, now() - interval '1 minute' from generate_series(1, $1::int) as n`,
    [count, attempts],
  )
}

const reapTag = (sql: string): boolean => sql.includes('skip locked') && sql.includes('reaper:')

describe('several at once', () => {
  // E07 X183
  test('two reapers at the same time: every job is handled once', async (t) => {
    const tables = await jobTables(t)
    await manyExpired(tables, 'jobs', 1_300, 1)
    await manyExpired(tables, 'asr_jobs', 700, 3)
    const reapers = Array.from({ length: 2 }, () => new Reaper(tables.pool))
    const results = await Promise.all(reapers.map((reaper) => reaper.runOnce()))
    // The one that found the other at work may leave the rest to it, and a further run finds nothing twice.
    results.push(await new Reaper(tables.pool).runOnce())
    const requeued = results.flatMap((result) => result.requeuedIds)
    const failed = results.flatMap((result) => result.failedIds)
    assert.deepEqual([requeued.length, new Set(requeued).size], [1_300, 1_300])
    assert.deepEqual([failed.length, new Set(failed).size], [700, 700])
    assert.equal((await tables.events()).length, 2_000)
  })

  // E07 X183
  test('a reaper that finds another at work on the table leaves it alone', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    const other = await tables.pool.connect()
    await other.query('begin')
    await other.query(`select pg_advisory_xact_lock(${0x4d494c4c}, 'jobs'::regclass::oid::int)`)
    const { log, lines } = capturedLog()
    const reaper = new Reaper(tables.pool, { log })
    assert.deepEqual((await reaper.runOnce()).requeuedIds, [])
    assert.deepEqual(
      lines('Another reaper is running').map((line) => line.table),
      ['jobs', 'jobs'],
    )
    await other.query('rollback')
    other.release()
    assert.deepEqual((await reaper.runOnce()).requeuedIds, ['a'])
  })

  // E39
  test('a row that somebody holds locked is left out, and nobody waits for it', async (t) => {
    const tables = await jobTables(t)
    for (const id of ['a', 'b', 'c']) await tables.expired('jobs', id)
    const holder = await tables.pool.connect()
    await holder.query('begin')
    await holder.query(`select 1 from jobs where id = 'b' for update`)
    const reaper = new Reaper(tables.pool)
    assert.deepEqual((await reaper.runOnce()).requeuedIds.toSorted(), ['a', 'c'])
    await holder.query('commit')
    holder.release()
    assert.deepEqual((await reaper.runOnce()).requeuedIds, ['b'])
  })

  test('two calls of one reaper are one run', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    const reaper = new Reaper(tables.pool)
    const [first, second] = await Promise.all([reaper.runOnce(), reaper.runOnce()])
    assert.equal(first, second)
    assert.deepEqual(first.requeuedIds, ['a'])
  })
})

describe('the statements', () => {
  // E35 E37 E39 X172 X183
  test('a pass is one UPDATE … RETURNING over at most 500 rows', async (t) => {
    const tables = await jobTables(t)
    await manyExpired(tables, 'jobs', 1_001, 1)
    const sent: string[] = []
    const counts: number[] = []
    const database: Database = {
      query: async (text, values) => {
        const answer = await tables.pool.query(text, values)
        if (reapTag(text)) {
          sent.push(text)
          counts.push(answer.rows.filter((row) => row.id !== null).length)
        }
        return answer
      },
    }
    const result = await new Reaper(database, { tables: ['jobs'] }).runOnce()
    assert.equal(result.requeuedIds.length, 1_001)
    assert.deepEqual(counts, [PASS_MAX, PASS_MAX, 1, 0])
    assert.equal(PASS_MAX, 500)
    for (const text of sent) {
      assert.equal(text.match(/\bupdate "jobs"/g)?.length, 1)
      assert.match(text, /limit \$3::int\s+for update of job skip locked[\s\S]+update "jobs"[\s\S]+\breturning\b/)
    }
  })

  // E34
  test('the index on status and lease finds the expired among many', async (t) => {
    const tables = await jobTables(t)
    await tables.pool.query(
      `insert into jobs (id, status) select 'done ' || n, 'completed' from generate_series(1, 20000) as n`,
    )
    await tables.pool.query('analyze jobs')
    await tables.expired('jobs', 'a')
    const plans: string[] = []
    const database: Database = {
      query: async (text, values) => {
        if (!reapTag(text)) return tables.pool.query(text, values)
        const { rows } = await tables.pool.query<Record<string, string>>(`explain ${text}`, values)
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
        return tables.pool.query(text, values)
      },
    }
    await new Reaper(database, { tables: ['jobs'] }).runOnce()
    assert.equal(plans.length, 2)
    for (const plan of plans) {
      assert.match(plan, /idx_jobs_status_(?:lease|heartbeat)/)
      assert.doesNotMatch(plan, /Seq Scan on jobs/)
    }
  })

  // E42
  test('tables of another make: uuid keys, an enum for the status, json events', async (t) => {
    const tables = await jobTables(
      t,
      `create type job_status as enum ('queued', 'processing', 'completed', 'failed');
       create table jobs (id uuid primary key default gen_random_uuid(), status job_status not null default 'queued');
       create table asr_jobs (id uuid primary key, status varchar(20) not null default 'queued');
       create table job_events (id serial, job_id uuid not null, data json not null)`,
    )
    const id = '0190a1b2-0000-7000-8000-000000000001'
    await tables.expired('jobs', id)
    await tables.expired('asr_jobs', id, { attempt_count: 3 })
    assert.deepEqual(await new Reaper(tables.pool).runOnce(), { requeuedIds: [id], failedIds: [id] })
    assert.equal((await tables.events(id)).length, 2)
  })

  // E13
  test('the reaper works without the columns of the hard deadline', async (t) => {
    const tables = await jobTables(t)
    await tables.pool.query('alter table jobs drop column started_at, drop column created_at, drop column updated_at')
    await tables.expired('jobs', 'a')
    assert.deepEqual((await new Reaper(tables.pool, { tables: ['jobs'] }).runOnce()).requeuedIds, ['a'])
  })
})

describe('rights', () => {
  test('select, insert and update are enough; without them the error says what is missing', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    const role = `reaper_of_${tables.schema}`
    await tables.pool.query(`create role ${role} login; grant usage on schema ${tables.schema} to ${role}`)
    const url = new URL(tables.url)
    url.username = role
    const pool = new pg.Pool({ connectionString: url.href })
    try {
      const reaper = new Reaper(pool, { tables: ['jobs'] })
      await assert.rejects(reaper.runOnce(), { code: 'ERR_STORAGE_READONLY', message: /permission denied/ })
      await tables.pool.query(`grant select, update on jobs to ${role}; grant insert on job_events to ${role}`)
      assert.deepEqual((await reaper.runOnce()).requeuedIds, ['a'])
    } finally {
      await pool.end()
      await tables.pool.query(`drop owned by ${role}; drop role ${role}`)
    }
  })
})

/** Waits for nothing, and remembers what it was asked to wait for. */
function impatientClock(): { readonly clock: Clock; readonly sleptMs: number[] } {
  const sleptMs: number[] = []
  return { sleptMs, clock: { ...systemClock, sleep: async (ms) => void sleptMs.push(ms) } }
}

describe('an unreachable database', () => {
  // E43 X187
  test('a connection that is reset in the first query is replaced, and the run succeeds', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    const proxy = await tcpProxy(t, tables.url)
    const pool = new pg.Pool({ connectionString: proxy.url })
    pool.on('error', () => {})
    t.after(() => pool.end())
    proxy.resetAt('skip locked', 1)
    const { log, lines } = capturedLog()
    const { clock, sleptMs } = impatientClock()
    assert.deepEqual((await new Reaper(pool, { clock, log }).runOnce()).requeuedIds, ['a'])
    assert.equal(proxy.resets, 1)
    assert.deepEqual(sleptMs, [100])
    assert.equal(lines('Reaper retries').length, 1)
  })

  // E43 X187
  test('three tries more, after 100, 400 and 1600 ms, then the run has failed; the other table had its turn', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    await tables.expired('asr_jobs', '1')
    const proxy = await tcpProxy(t, tables.url)
    const pool = new pg.Pool({ connectionString: proxy.url })
    pool.on('error', () => {})
    t.after(() => pool.end())
    proxy.resetAt('update "jobs"', 4)
    const { clock, sleptMs } = impatientClock()
    const { log, lines } = capturedLog()
    const reaper = new Reaper(pool, { clock, log })
    await assert.rejects(reaper.runOnce(), { code: 'ERR_STORAGE_FAILED' })
    assert.deepEqual(sleptMs, [100, 400, 1_600])
    assert.equal(lines('Reaper could not scan').length, 1)
    assert.equal((await tables.row('jobs', 'a')).status, 'processing')
    assert.equal((await tables.row('asr_jobs', '1')).status, 'queued')
    assert.deepEqual((await reaper.runOnce()).requeuedIds, ['a'])
  })

  test('an error that will not pass is not tried again, and says what to do', async (t) => {
    const tables = await jobTables(t)
    await tables.pool.query('drop table asr_jobs; alter table jobs drop column locked_by')
    const { clock, sleptMs } = impatientClock()
    await assert.rejects(new Reaper(tables.pool, { clock }).runOnce(), {
      code: 'ERR_SCHEMA_MISSING',
      message: `table 'jobs' has no column locked_by; add what is missing with 'millrace migrate --tables jobs'`,
    })
    await assert.rejects(new Reaper(tables.pool, { clock, tables: ['asr_jobs'] }).runOnce(), {
      code: 'ERR_SCHEMA_MISSING',
      message: `table 'asr_jobs' does not exist; check its name, or create it with 'millrace migrate --tables asr_jobs --new'`,
    })
    await tables.pool.query('drop table job_events; alter table jobs add column locked_by text')
    await assert.rejects(new Reaper(tables.pool, { clock, tables: ['jobs'] }).runOnce(), {
      code: 'ERR_SCHEMA_MISSING',
      message: /table 'job_events' does not exist; add what is missing with 'millrace migrate --tables <your tables>'/,
    })
    assert.deepEqual(sleptMs, [])
  })

  test('a table that is changed under a running reaper is looked at again', async (t) => {
    const tables = await jobTables(t)
    const reaper = new Reaper(tables.pool, { tables: ['jobs'] })
    await reaper.runOnce()
    await tables.pool.query('alter table jobs drop column updated_at')
    await assert.rejects(reaper.runOnce(), { code: 'ERR_SCHEMA_MISSING' })
    await tables.expired('jobs', 'a')
    assert.deepEqual((await reaper.runOnce()).requeuedIds, ['a'])
  })
})
