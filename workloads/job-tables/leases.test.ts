import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { jobTables, secondsFromNow, type TableFixture } from '../../test/fixtures/job-tables.ts'
import type { ServiceResult } from './database.ts'
import { openJobTables } from './job-tables.ts'
import type { LeasedJob } from './leases.ts'
import { Reaper } from './reaper.ts'
import { readTableSettings } from './settings.ts'

const IN_JOBS = { table: 'jobs' } as const
const NOW_MS = Date.UTC(2030, 0, 1)

/** The functions with a clock that the test moves. */
function atTestTime({ pool }: TableFixture) {
  const time = { nowMs: NOW_MS }
  return { time, ...openJobTables(pool, { nowMs: () => time.nowMs }) }
}

function granted<Value>(result: ServiceResult<Value>): Value {
  assert.ok(result.ok, result.ok ? '' : `${result.code}: ${result.error}`)
  return result.value
}

function codeOf(result: ServiceResult<unknown>): string | undefined {
  assert.equal(result.ok, false)
  return result.ok ? undefined : result.code
}

const leaseOf = (job: LeasedJob): number => job.leaseExpiresAt.getTime()

describe('claimJob', () => {
  // E09 E42 X174 X178
  test('takes the job, counts the start, sets the lease and clears the backoff', async (t) => {
    const tables = await jobTables(t)
    const { claimJob } = atTestTime(tables)
    await tables.insert('jobs', { id: 'a', next_earliest_run_at: new Date(NOW_MS) })
    const job = granted(await claimJob('a', 'worker-1', 300, IN_JOBS))
    assert.deepEqual(job, {
      id: 'a',
      table: 'jobs',
      attempt: 1,
      maxAttempts: 3,
      stage: null,
      leaseExpiresAt: new Date(NOW_MS + 300_000),
      deadlineAt: null,
    })
    const row = await tables.row('jobs', 'a')
    assert.deepEqual(
      [row.status, row.locked_by, row.lease_expires_at, row.last_heartbeat_at, row.attempt_count],
      ['processing', 'worker-1', new Date(NOW_MS + 300_000), new Date(NOW_MS), 1],
    )
    assert.equal(row.next_earliest_run_at, null)
  })

  // E09
  test('the time is that of the database', async (t) => {
    const tables = await jobTables(t)
    const { claimJob } = openJobTables(tables.pool)
    await tables.insert('jobs', { id: 'a' })
    const before = await databaseMs(tables)
    const lease = leaseOf(granted(await claimJob('a', 'worker-1', 60, IN_JOBS)))
    assert.ok(lease >= before + 60_000 && lease <= (await databaseMs(tables)) + 60_000)
  })

  // E47
  test('a lease that is not told is the default of the environment', async (t) => {
    const tables = await jobTables(t)
    const settings = readTableSettings({ QUEUE_VISIBILITY_SEC: '77' })
    const { claimJob } = openJobTables(tables.pool, { settings, nowMs: () => NOW_MS })
    await tables.insert('jobs', { id: 'a' })
    assert.equal(leaseOf(granted(await claimJob('a', 'worker-1', undefined, IN_JOBS))), NOW_MS + 77_000)
  })

  // X191
  test('what is not queued, not due or not there is not claimable', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, time } = atTestTime(tables)
    for (const status of ['processing', 'failed', 'completed']) await tables.insert('jobs', { id: status, status })
    await tables.insert('jobs', { id: 'later', next_earliest_run_at: new Date(NOW_MS + 1) })
    for (const id of ['processing', 'failed', 'completed', 'later', 'absent']) {
      assert.equal(codeOf(await claimJob(id, 'worker-1', 300, IN_JOBS)), 'not_claimable', id)
    }
    time.nowMs += 1
    assert.equal((await claimJob('later', 'worker-1', 300, IN_JOBS)).ok, true)
  })

  // X191 X189
  test('of many that try at the same time one gets the job', async (t) => {
    const tables = await jobTables(t)
    const { claimJob } = openJobTables(tables.pool)
    await tables.insert('jobs', { id: 'a' })
    const workers = Array.from({ length: 10 }, (_, index) => `worker-${index}`)
    const results = await Promise.all(workers.map((worker) => claimJob('a', worker, 300, IN_JOBS)))
    const winners = workers.filter((_, index) => results[index]?.ok)
    assert.equal(winners.length, 1)
    const row = await tables.row('jobs', 'a')
    assert.deepEqual([row.locked_by, row.attempt_count], [winners[0], 1])
  })
})

describe('heartbeatJob', () => {
  // E10
  test('extends the lease and says when it was heard', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, heartbeatJob, time } = atTestTime(tables)
    await tables.insert('jobs', { id: 'a' })
    await claimJob('a', 'worker-1', 300, IN_JOBS)
    time.nowMs += 299_000
    const job = granted(await heartbeatJob('a', 'worker-1', 300, IN_JOBS))
    assert.equal(leaseOf(job), time.nowMs + 300_000)
    const row = await tables.row('jobs', 'a')
    assert.deepEqual(
      [row.lease_expires_at, row.last_heartbeat_at, row.attempt_count],
      [new Date(time.nowMs + 300_000), new Date(time.nowMs), 1],
    )
  })

  // X185
  test('does not revive a lease that has ended, though nobody has reaped it', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, heartbeatJob, time } = atTestTime(tables)
    await tables.insert('jobs', { id: 'a' })
    await claimJob('a', 'worker-1', 300, IN_JOBS)
    time.nowMs += 300_000
    assert.equal((await heartbeatJob('a', 'worker-1', 300, IN_JOBS)).ok, true)
    time.nowMs += 300_001
    assert.equal(codeOf(await heartbeatJob('a', 'worker-1', 300, IN_JOBS)), 'lease_expired')
  })

  // X171 X185
  test("is refused for another worker's job, and for this worker's earlier start", async (t) => {
    const tables = await jobTables(t)
    const { claimJob, heartbeatJob, finishJob, time } = atTestTime(tables)
    await tables.insert('jobs', { id: 'a' })
    const first = granted(await claimJob('a', 'worker-1', 300, IN_JOBS))
    assert.equal(codeOf(await heartbeatJob('a', 'worker-2', 300, IN_JOBS)), 'lease_lost')
    await finishJob('a', false, {}, { ...IN_JOBS, workerId: 'worker-1' })
    assert.equal(codeOf(await heartbeatJob('a', 'worker-1', 300, IN_JOBS)), 'lease_lost')
    time.nowMs += 60_000
    const second = granted(await claimJob('a', 'worker-1', 300, IN_JOBS))
    const at = (attempt: number) => heartbeatJob('a', 'worker-1', 300, { ...IN_JOBS, attempt })
    assert.equal(codeOf(await at(first.attempt)), 'lease_lost')
    assert.equal((await at(second.attempt)).ok, true)
  })

  // X171
  test('is refused for a row that a person took out of processing by hand', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, heartbeatJob, finishJob } = atTestTime(tables)
    await tables.insert('jobs', { id: 'a' })
    await claimJob('a', 'worker-1', 300, IN_JOBS)
    await tables.pool.query(`update jobs set status = 'failed'`)
    assert.equal(codeOf(await heartbeatJob('a', 'worker-1', 300, IN_JOBS)), 'lease_lost')
    assert.equal(codeOf(await finishJob('a', true, {}, { ...IN_JOBS, workerId: 'worker-1' })), 'lease_lost')
    assert.equal((await tables.row('jobs', 'a')).status, 'failed')
  })

  // E48 E49 E50 X025 X179
  test('is refused after the hard deadline of the stage, else of the table', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, heartbeatJob, time } = atTestTime(tables)
    const cases = [
      { table: 'jobs', id: '1', stage: 'clip', factor: 6 },
      { table: 'jobs', id: '2', stage: 'asr', factor: 12 },
      { table: 'jobs', id: '3', stage: 'Burn-in', factor: 8 },
      { table: 'asr_jobs', id: '4', stage: null, factor: 12 },
      { table: 'jobs', id: '5', stage: 'upload', factor: null },
      { table: 'jobs', id: '6', stage: null, factor: null },
    ] as const
    for (const { table, id, stage, factor } of cases) {
      time.nowMs = NOW_MS
      await tables.insert(table, { id, stage, expected_duration_ms: 1_000 })
      const job = granted(await claimJob(id, 'worker-1', 3_600, { table }))
      assert.deepEqual(job.deadlineAt, factor === null ? null : new Date(NOW_MS + factor * 1_000), id)
      time.nowMs = NOW_MS + (factor ?? 1_000) * 1_000
      assert.equal((await heartbeatJob(id, 'worker-1', 3_600, { table })).ok, true, id)
      time.nowMs += 1
      const late = await heartbeatJob(id, 'worker-1', 3_600, { table })
      assert.equal(late.ok ? null : late.code, factor === null ? null : 'deadline_passed', id)
    }
  })

  // X179
  test('a job past its deadline is reaped once its last lease has ended', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, heartbeatJob, time } = atTestTime(tables)
    await tables.insert('jobs', { id: 'a', stage: 'clip', expected_duration_ms: 10_000 })
    await claimJob('a', 'worker-1', 30, IN_JOBS)
    const reaper = new Reaper(tables.pool, { nowMs: () => time.nowMs })
    let beats = 0
    for (; (await heartbeatJob('a', 'worker-1', 30, IN_JOBS)).ok; beats += 1) time.nowMs += 15_000
    assert.equal(beats, 5)
    assert.deepEqual((await reaper.runOnce()).requeuedIds, [])
    time.nowMs += 15_001
    assert.deepEqual((await reaper.runOnce()).requeuedIds, ['a'])
  })
})

describe('every function', () => {
  // E02
  test('refuses a table that was not configured', async (t) => {
    const tables = await jobTables(t)
    await tables.pool.query(`create table video_jobs (id text primary key, status text not null)`)
    const { claimJob, heartbeatJob, finishJob, listDue, queueAge, insertJob } = openJobTables(tables.pool)
    const table = JSON.parse('"video_jobs"')
    const refusals = [
      await claimJob('a', 'worker-1', 300, { table }),
      await heartbeatJob('a', 'worker-1', 300, { table }),
      await finishJob('a', true, {}, { table, workerId: 'worker-1' }),
      await listDue({ table }),
      await queueAge({ table }),
      await insertJob({ id: 'a' }, { table }),
    ]
    for (const refusal of refusals) assert.equal(codeOf(refusal), 'unknown_table')
    // @ts-expect-error: JobTable is exactly 'jobs' or 'asr_jobs'
    const typed = claimJob('a', 'worker-1', 300, { table: 'video_jobs' })
    assert.equal(codeOf(await typed), 'unknown_table')
  })

  // E02
  test('works on another table that the configuration names', async (t) => {
    const tables = await jobTables(t, 'create table "video jobs" (id text primary key, status text not null)', [
      'video jobs',
    ])
    const { claimJob, insertJob } = openJobTables(tables.pool, { tables: ['video jobs'] })
    assert.deepEqual(granted(await insertJob({ id: 'a' }, { table: 'video jobs' })), { id: 'a' })
    assert.equal(granted(await claimJob('a', 'worker-1', 300, { table: 'video jobs' })).table, 'video jobs')
    assert.throws(() => openJobTables(tables.pool, { tables: [] }), { code: 'ERR_OPTION_INVALID' })
    assert.throws(() => openJobTables(tables.pool, { tables: ['a', 'a'] }), { code: 'ERR_OPTION_INVALID' })
  })

  // E12
  test('returns what is wrong with its arguments, and does not throw', async (t) => {
    const tables = await jobTables(t)
    const { claimJob, heartbeatJob, finishJob } = openJobTables(tables.pool)
    const anything = JSON.parse('{"missing":null}')
    for (const leaseSec of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.equal(codeOf(await claimJob('a', 'worker-1', leaseSec, IN_JOBS)), 'invalid_argument', String(leaseSec))
    }
    assert.equal(codeOf(await claimJob('', 'worker-1', 300, IN_JOBS)), 'invalid_argument')
    assert.equal(codeOf(await heartbeatJob('a', '', 300, IN_JOBS)), 'invalid_argument')
    assert.equal(codeOf(await claimJob('a', 'worker-1', 300, anything.missing)), 'unknown_table')
    assert.equal(codeOf(await finishJob('a', anything.missing, {}, { ...IN_JOBS, workerId: 'w' })), 'invalid_argument')
    assert.equal(codeOf(await claimJob('not a number', 'worker-1', 300, { table: 'asr_jobs' })), 'database_error')
  })

  // E12
  test('returns that the database is away or lacks columns, and does not throw', async (t) => {
    const tables = await jobTables(t)
    const away = openJobTables({ query: () => Promise.reject(Object.assign(new Error(''), { code: 'ECONNREFUSED' })) })
    assert.equal(codeOf(await away.claimJob('a', 'worker-1', 300, IN_JOBS)), 'database_unavailable')
    assert.equal(codeOf(await away.finishJob('a', true, {}, { ...IN_JOBS, workerId: 'w' })), 'database_unavailable')
    await tables.pool.query('alter table jobs drop column started_at')
    const result = await openJobTables(tables.pool).claimJob('a', 'worker-1', 300, IN_JOBS)
    assert.equal(codeOf(result), 'schema_missing')
    assert.match(result.ok ? '' : result.error, /no column started_at.*millrace migrate --tables jobs/)
  })
})

async function databaseMs({ pool }: TableFixture): Promise<number> {
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now')
  return rows[0]?.now.getTime() ?? secondsFromNow(0).getTime()
}
