import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { jobTables, secondsFromNow, type TableFixture } from '../../test/fixtures/job-tables.ts'
import type { ServiceResult } from './database.ts'
import { openJobTables } from './job-tables.ts'
import { Reaper } from './reaper.ts'
import { readTableSettings } from './settings.ts'

const HELD = { table: 'jobs', workerId: 'worker-1' } as const
const NOW_MS = Date.UTC(2030, 0, 1)

function granted<Value>(result: ServiceResult<Value>): Value {
  assert.ok(result.ok, result.ok ? '' : `${result.code}: ${result.error}`)
  return result.value
}

/** Job `a`, claimed by worker-1 at the test's time. */
async function claimed(tables: TableFixture, row = {}) {
  const time = { nowMs: NOW_MS }
  const functions = openJobTables(tables.pool, { nowMs: () => time.nowMs })
  await tables.insert('jobs', { id: 'a', ...row })
  granted(await functions.claimJob('a', 'worker-1', 300, HELD))
  return { time, ...functions }
}

describe('finishJob', () => {
  // E11 X004
  test('success completes the row, without an owner, a lease or an old failure', async (t) => {
    const tables = await jobTables(t)
    const { finishJob } = await claimed(tables, { fail_code: 'old', fail_reason: 'old' })
    const finished = granted(await finishJob('a', true, undefined, HELD))
    assert.deepEqual(finished, { id: 'a', table: 'jobs', status: 'completed', attempt: 1, nextEarliestRunAt: null })
    const row = await tables.row('jobs', 'a')
    assert.deepEqual(
      [row.status, row.locked_by, row.lease_expires_at, row.fail_code, row.fail_reason],
      ['completed', null, null, null, null],
    )
    assert.deepEqual(await tables.events('a'), [
      {
        job_id: 'a',
        type: 'worker:completed',
        table: 'jobs',
        details: { locked_by: 'worker-1' },
        at: '2030-01-01T00:00:00.000Z',
      },
    ])
  })

  // E11 X192
  test('failure with attempts left goes back to the queue after its backoff', async (t) => {
    const tables = await jobTables(t)
    const { finishJob } = await claimed(tables, { attempt_count: 1 })
    const finished = granted(await finishJob('a', false, { code: 'E_CODEC', reason: 'no audio' }, HELD))
    assert.deepEqual([finished.status, finished.nextEarliestRunAt], ['queued', new Date(NOW_MS + 2_000)])
    const row = await tables.row('jobs', 'a')
    assert.deepEqual(
      [row.status, row.locked_by, row.lease_expires_at, row.fail_code, row.fail_reason, row.next_earliest_run_at],
      ['queued', null, null, 'E_CODEC', 'no audio', new Date(NOW_MS + 2_000)],
    )
    const [event] = await tables.events('a')
    assert.equal(event?.type, 'worker:requeued')
    assert.deepEqual(event?.details, { reason: 'no audio', code: 'E_CODEC', locked_by: 'worker-1' })
  })

  // E11 X192
  test('failure of the last start, or one that must not be retried, is final', async (t) => {
    for (const [before, retryable] of [
      [2, true],
      [0, false],
    ] as const) {
      const tables = await jobTables(t)
      const { finishJob } = await claimed(tables, { attempt_count: before })
      const details = { code: 'E_CODEC', reason: 'no audio', retryable }
      assert.equal(granted(await finishJob('a', false, details, HELD)).status, 'failed')
      const row = await tables.row('jobs', 'a')
      assert.deepEqual(
        [row.status, row.locked_by, row.fail_code, row.fail_reason, row.next_earliest_run_at],
        ['failed', null, 'E_CODEC', 'no audio', null],
      )
      assert.equal((await tables.events('a'))[0]?.type, 'worker:failed')
    }
  })

  // X171 X185
  test('changes nothing for another worker, an earlier start, an ended lease, or a second time', async (t) => {
    const tables = await jobTables(t)
    const { finishJob, time } = await claimed(tables)
    const refuse = async (options: typeof HELD & { attempt?: number }, code: string): Promise<void> => {
      const before = await tables.row('jobs', 'a')
      for (const success of [true, false]) {
        const result = await finishJob('a', success, {}, options)
        assert.equal(result.ok ? 'done' : result.code, code)
      }
      assert.deepEqual(await tables.row('jobs', 'a'), before)
    }
    const other = JSON.parse('{"table":"jobs","workerId":"worker-2"}')
    await refuse(other, 'lease_lost')
    await refuse({ ...HELD, attempt: 2 }, 'lease_lost')
    time.nowMs += 300_001
    await refuse(HELD, 'lease_expired')
    time.nowMs -= 1
    assert.equal((await finishJob('a', true, {}, { ...HELD, attempt: 1 })).ok, true)
    await refuse(HELD, 'lease_lost')
    assert.equal((await tables.events('a')).length, 1)
  })

  // X171
  test('a worker that was reaped cannot settle what another has taken', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, finishJob, time } = await claimed(tables)
    time.nowMs += 300_001
    await new Reaper(tables.pool, { nowMs: () => time.nowMs }).runOnce()
    time.nowMs += 1_000
    granted(await claimJob('a', 'worker-2', 300, HELD))
    const stale = await finishJob('a', true, {}, HELD)
    assert.equal(stale.ok ? 'done' : stale.code, 'lease_lost')
    assert.equal((await tables.row('jobs', 'a')).locked_by, 'worker-2')
    assert.equal(granted(await finishJob('a', true, {}, { ...HELD, workerId: 'worker-2' })).attempt, 2)
  })

  // X181
  test('without its event a row does not change', async (t) => {
    const tables = await jobTables(t)
    const { finishJob } = await claimed(tables)
    await tables.pool.query('alter table job_events add constraint none check (data is null)')
    for (const success of [true, false]) {
      const result = await finishJob('a', success, {}, HELD)
      assert.equal(result.ok ? 'done' : result.code, 'database_error')
    }
    assert.equal((await tables.row('jobs', 'a')).status, 'processing')
  })

  test('a reason is redacted, cut, and freed of what Postgres cannot store', async (t) => {
    const tables = await jobTables(t)
    const { finishJob } = await claimed(tables)
    const reason = `password=hunter2 \0${'x'.repeat(5_000)}`
    granted(await finishJob('a', false, { code: 'E\0X', reason }, HELD))
    const row = await tables.row('jobs', 'a')
    assert.doesNotMatch(String(row.fail_reason), /hunter2/)
    assert.ok(String(row.fail_reason).length <= 2_000)
    assert.equal(row.fail_code, 'EX')
  })

  test('a status that is an enum is settled too', async (t) => {
    const tables = await jobTables(
      t,
      `create type job_status as enum ('queued', 'processing', 'completed', 'failed');
       create table jobs (id uuid primary key default gen_random_uuid(), status job_status not null);
       create table asr_jobs (id int primary key, status text);
       create table job_events (job_id uuid not null, data jsonb not null)`,
    )
    const { insertJob, claimJob, finishJob } = openJobTables(tables.pool)
    for (const [success, status] of [
      [true, 'completed'],
      [false, 'queued'],
    ] as const) {
      const { id } = granted(await insertJob({}, HELD))
      granted(await claimJob(id, 'worker-1', 300, HELD))
      assert.equal(granted(await finishJob(id, success, {}, HELD)).status, status)
    }
  })
})

describe('a finish by the id alone', () => {
  const ONE = { tables: ['jobs'] } as const

  test('ends the start that holds the lease, and the event names its owner', async (t) => {
    const tables = await jobTables(t)
    await claimed(tables)
    const { finishJob } = openJobTables(tables.pool, { ...ONE, nowMs: () => NOW_MS })
    assert.equal(granted(await finishJob('a', true)).status, 'completed')
    assert.deepEqual((await tables.events('a'))[0]?.details, { locked_by: 'worker-1' })
  })

  test('is refused unless the row is processing under a lease that has not ended', async (t) => {
    const tables = await jobTables(t)
    // As a person leaves a row whose status is changed by hand: the lease still runs.
    const lease = { locked_by: 'worker-1', lease_expires_at: secondsFromNow(3_600) }
    for (const status of ['queued', 'completed', 'failed'])
      await tables.insert('jobs', { id: status, status, ...lease })
    await tables.expired('jobs', 'ended')
    const before = await tables.pool.query('select * from jobs order by id')
    const { finishJob } = openJobTables(tables.pool, ONE)
    for (const success of [true, false]) {
      for (const [id, code] of [
        ['queued', 'lease_lost'],
        ['completed', 'lease_lost'],
        ['failed', 'lease_lost'],
        ['absent', 'lease_lost'],
        ['ended', 'lease_expired'],
      ] as const) {
        const result = await finishJob(id, success)
        assert.deepEqual([id, result.ok, !result.ok && result.code], [id, false, code])
      }
    }
    assert.deepEqual((await tables.pool.query('select * from jobs order by id')).rows, before.rows)
    assert.deepEqual(await tables.events(), [])
  })

  test(`can end the start of a successor, which the worker or fence: 'required' prevents`, async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    const settings = readTableSettings({ QUEUE_RETRY_BACKOFF_MS_BASE: '0' })
    await new Reaper(tables.pool, { ...ONE, settings }).runOnce()
    const { claimJob, finishJob } = openJobTables(tables.pool, ONE)
    granted(await claimJob('a', 'worker-2', 300))
    const late = await finishJob('a', true, undefined, { workerId: 'worker-1' })
    assert.equal(!late.ok && late.code, 'lease_lost')
    // worker-1 again, without saying who it is.
    granted(await finishJob('a', true))
    assert.deepEqual((await tables.events('a'))[1]?.details, { locked_by: 'worker-2' })
  })
})

describe('the queue', () => {
  // E46 X176
  test('a new row gets the attempts of the environment, unless it brings its own', async (t) => {
    const tables = await jobTables(t)
    const settings = readTableSettings({ JOB_MAX_ATTEMPTS: '4' })
    const { insertJob } = openJobTables(tables.pool, { settings })
    await insertJob({ id: 'a', title: 'one' }, HELD)
    await insertJob({ id: 'b', max_attempts: 5 }, HELD)
    const rows = [await tables.row('jobs', 'a'), await tables.row('jobs', 'b')]
    assert.deepEqual(
      rows.map((row) => [row.status, row.title, row.max_attempts]),
      [
        ['queued', 'one', 4],
        ['queued', 'a clip', 5],
      ],
    )
  })

  test('a row can be added within a transaction of the user', async (t) => {
    const tables = await jobTables(t)
    const { insertJob } = openJobTables(tables.pool)
    const client = await tables.pool.connect()
    await client.query('begin')
    granted(await insertJob({ id: 'a' }, { table: 'jobs', within: client }))
    await client.query('rollback')
    client.release()
    await assert.rejects(tables.row('jobs', 'a'), /no row a/)
  })

  // E41 X189
  test('a dispatcher finds what is due, a requeued job after its backoff', async (t) => {
    const tables = await jobTables(t)
    const { listDue, claimJob, time } = await claimed(tables)
    await tables.insert('jobs', { id: 'b' })
    time.nowMs += 300_001
    await new Reaper(tables.pool, { nowMs: () => time.nowMs }).runOnce()
    assert.deepEqual(granted(await listDue({ table: 'jobs' })), ['b'])
    time.nowMs += 1_000
    assert.deepEqual(granted(await listDue({ table: 'jobs' })), ['b', 'a'])
    assert.deepEqual(granted(await listDue({ table: 'jobs', limit: 1 })), ['b'])
    assert.equal(granted(await claimJob('a', 'worker-2', 300, HELD)).attempt, 2)
    assert.equal((await listDue({ table: 'jobs', limit: 0 })).ok, false)
  })

  // X190
  test('the age of the queue is how long the first that is due has waited', async (t) => {
    const tables = await jobTables(t)
    const { queueAge } = openJobTables(tables.pool, { nowMs: () => NOW_MS })
    assert.deepEqual(granted(await queueAge({ table: 'jobs' })), { waiting: 0, oldestMs: null })
    const at = (offsetMs: number): Date => new Date(NOW_MS + offsetMs)
    await tables.insert('jobs', { id: 'later', next_earliest_run_at: at(1), created_at: at(-900_000) })
    await tables.insert('jobs', { id: 'new', created_at: at(-5_000) })
    await tables.insert('jobs', { id: 'due', next_earliest_run_at: at(-7_000), created_at: at(-900_000) })
    await tables.insert('jobs', { id: 'held', status: 'processing', created_at: at(-900_000) })
    assert.deepEqual(granted(await queueAge({ table: 'jobs' })), { waiting: 2, oldestMs: 7_000 })
  })
})
