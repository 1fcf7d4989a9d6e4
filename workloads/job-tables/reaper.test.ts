import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../../conformance/process/child.ts'
import { jobTables, secondsFromNow, type Values } from '../../test/fixtures/job-tables.ts'
import { capturedLog } from '../../test/fixtures/log-lines.ts'
import { type Reaped, Reaper } from './reaper.ts'
import { CountedMetrics } from './reaper-report.ts'
import { readTableSettings, requeueDelayMs } from './settings.ts'

const sorted = (ids: readonly string[]): readonly string[] => ids.toSorted()

describe('what a run does', () => {
  // E01 E08 E33 E42 E60 E61
  test('expired jobs of both tables are requeued or failed by their attempts, jobs first', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('asr_jobs', '1')
    await tables.expired('asr_jobs', '2', { attempt_count: 3 })
    await tables.expired('jobs', 'a')
    await tables.expired('jobs', 'b', { attempt_count: 3 })
    const { log, lines } = capturedLog()
    const result = await new Reaper(tables.pool, { log }).runOnce()
    assert.deepEqual(result, { requeuedIds: ['a', '1'], failedIds: ['b', '2'] })
    assert.deepEqual(
      lines('Reaper scanned').map((line) => line.table),
      ['jobs', 'asr_jobs'],
    )
    for (const [table, id, status] of [
      ['jobs', 'a', 'queued'],
      ['jobs', 'b', 'failed'],
      ['asr_jobs', '1', 'queued'],
      ['asr_jobs', '2', 'failed'],
    ] as const) {
      assert.equal((await tables.row(table, id)).status, status, `${table} ${id}`)
    }
  })

  // E41 X178 X180
  test('a requeued row has no owner and no lease, and waits for its backoff', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a', { attempt_count: 2 })
    const nowMs = Date.UTC(2030, 0, 1)
    await new Reaper(tables.pool, { nowMs: () => nowMs }).runOnce()
    const row = await tables.row('jobs', 'a')
    assert.deepEqual(
      [row.status, row.locked_by, row.lease_expires_at, row.attempt_count, row.fail_code],
      ['queued', null, null, 2, null],
    )
    assert.deepEqual(row.next_earliest_run_at, new Date(nowMs + 2_000))
    assert.equal(row.title, 'a clip')
  })

  // X180
  test('a failed row says that its lease expired', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a', { attempt_count: 3 })
    await new Reaper(tables.pool).runOnce()
    const row = await tables.row('jobs', 'a')
    assert.deepEqual(
      [row.status, row.locked_by, row.lease_expires_at, row.fail_code, row.fail_reason],
      ['failed', null, null, 'timeout', 'lease_expired'],
    )
  })

  // E26 E27 E28 E29 E30 E31 X172 X182 X188
  test('each job gets one event, which names its former owner', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', '7', { locked_by: 'worker-7' })
    await tables.expired('asr_jobs', '7', { attempt_count: 3, locked_by: 'worker-8' })
    const nowMs = Date.UTC(2030, 0, 1, 12, 34, 56, 78)
    await new Reaper(tables.pool, { nowMs: () => nowMs }).runOnce()
    const at = '2030-01-01T12:34:56.078Z'
    assert.deepEqual(await tables.events(), [
      {
        job_id: '7',
        type: 'reaper:requeued',
        table: 'jobs',
        details: { reason: 'lease_expired', locked_by: 'worker-7' },
        at,
      },
      {
        job_id: '7',
        type: 'reaper:failed(timeout)',
        table: 'asr_jobs',
        details: { reason: 'lease_expired', locked_by: 'worker-8' },
        at,
      },
    ])
  })

  // X181
  test('without its event a row does not change', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    await tables.pool.query(`alter table job_events add constraint none check (data is null)`)
    await assert.rejects(new Reaper(tables.pool, { tables: ['jobs'] }).runOnce(), { code: 'ERR_STORAGE_FAILED' })
    assert.equal((await tables.row('jobs', 'a')).status, 'processing')
    await tables.pool.query(`alter table job_events drop constraint none`)
    // The server told of the failure before it released the failed run's lock, so one run may still meet it.
    const reaper = new Reaper(tables.pool, { tables: ['jobs'] })
    const requeuedIds: string[] = []
    const requeues = async (): Promise<boolean> => requeuedIds.push(...(await reaper.runOnce()).requeuedIds) > 0
    await eventually(requeues, 'the job to be requeued')
    assert.deepEqual(requeuedIds, ['a'])
  })

  // E38 E54 E55 E56 E57 X184
  test('each job has one metric, one line and one notice; a scan has the stage all', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a', { stage: 'clip' })
    await tables.expired('jobs', 'b', { stage: 'clip' })
    await tables.expired('jobs', 'c')
    await tables.expired('asr_jobs', '1', { stage: 'asr', attempt_count: 3 })
    await tables.expired('asr_jobs', '2', { attempt_count: 4 })
    const metrics = new CountedMetrics()
    const { log, lines } = capturedLog()
    const told: Reaped[] = []
    await new Reaper(tables.pool, { metrics, log, onReaped: (reaped) => told.push(reaped) }).runOnce()
    assert.equal(metrics.total('reaper.requeues', { table: 'jobs', stage: 'clip' }), 2)
    assert.equal(metrics.total('reaper.requeues', { table: 'jobs', stage: 'unknown' }), 1)
    assert.equal(metrics.total('reaper.failures', { table: 'asr_jobs', stage: 'asr' }), 1)
    assert.equal(metrics.total('reaper.failures', { table: 'asr_jobs', stage: 'unknown' }), 1)
    for (const table of ['jobs', 'asr_jobs']) {
      assert.ok((metrics.latest('reaper.scan_duration_ms', { table, stage: 'all' }) ?? -1) >= 0, table)
    }
    const requeued = lines('Job requeued')
    assert.deepEqual(sorted(requeued.map((line) => String(line.job_id))), ['a', 'b', 'c'])
    assert.deepEqual(requeued.map(({ event, table, locked_by, reason }) => ({ event, table, locked_by, reason }))[0], {
      event: 'reaper:requeued',
      table: 'jobs',
      locked_by: 'worker-1',
      reason: 'lease_expired',
    })
    assert.deepEqual(sorted(lines('Job failed').map((line) => String(line.job_id))), ['1', '2'])
    assert.equal(told.length, 5)
    assert.equal((await tables.events()).length, 5)
  })
})

describe('which rows', () => {
  interface Side {
    readonly id: string
    readonly row: Values
    readonly becomes: 'queued' | 'failed' | 'processing'
  }
  const NOW_MS = Date.UTC(2030, 0, 1)
  const at = (offsetMs: number): Date => new Date(NOW_MS + offsetMs)
  const sides: readonly Side[] = [
    { id: 'past', row: { lease_expires_at: at(-1) }, becomes: 'queued' },
    { id: 'at the moment', row: { lease_expires_at: at(0) }, becomes: 'processing' },
    { id: 'live', row: { lease_expires_at: at(60_000) }, becomes: 'processing' },
    { id: 'attempts 2/3', row: { attempt_count: 2 }, becomes: 'queued' },
    { id: 'attempts 3/3', row: { attempt_count: 3 }, becomes: 'failed' },
    { id: 'attempts 4/3', row: { attempt_count: 4 }, becomes: 'failed' },
    { id: 'attempts 4/5', row: { attempt_count: 4, max_attempts: 5 }, becomes: 'queued' },
    { id: 'attempts 3/3 live', row: { attempt_count: 3, lease_expires_at: at(1) }, becomes: 'processing' },
    { id: 'due before', row: { next_earliest_run_at: at(-1) }, becomes: 'queued' },
    { id: 'due now', row: { next_earliest_run_at: at(0) }, becomes: 'queued' },
    { id: 'due later', row: { next_earliest_run_at: at(1) }, becomes: 'processing' },
    { id: 'due later, spent', row: { next_earliest_run_at: at(1), attempt_count: 3 }, becomes: 'failed' },
    { id: 'queued', row: { status: 'queued' }, becomes: 'queued' },
    { id: 'failed', row: { status: 'failed' }, becomes: 'failed' },
    { id: 'no lease, silent', row: { lease_expires_at: null, last_heartbeat_at: at(-300_001) }, becomes: 'queued' },
    { id: 'no lease, heard', row: { lease_expires_at: null, last_heartbeat_at: at(-300_000) }, becomes: 'processing' },
    {
      id: 'no lease, updated long ago',
      row: { lease_expires_at: null, updated_at: at(-300_001), created_at: at(0) },
      becomes: 'queued',
    },
    {
      id: 'no lease, created long ago but updated',
      row: { lease_expires_at: null, updated_at: at(-1), created_at: at(-900_000) },
      becomes: 'processing',
    },
    { id: 'no lease, created long ago', row: { lease_expires_at: null, created_at: at(-300_001) }, becomes: 'queued' },
    {
      id: 'no lease, spent',
      row: { lease_expires_at: null, last_heartbeat_at: at(-300_001), attempt_count: 3 },
      becomes: 'failed',
    },
  ]

  // E34 E36 E40 E58 X173
  test('each condition is kept on both of its sides', async (t) => {
    const tables = await jobTables(t)
    for (const { id, row } of sides) await tables.expired('jobs', id, { lease_expires_at: at(-1), ...row })
    await new Reaper(tables.pool, { nowMs: () => NOW_MS }).runOnce()
    const { rows } = await tables.pool.query<{ id: string; status: string }>('select id, status from jobs')
    const became = Object.fromEntries(rows.map(({ id, status }) => [id, status]))
    assert.deepEqual(became, Object.fromEntries(sides.map(({ id, becomes }) => [id, becomes])))
  })

  // E46
  test('the attempts of the row count, whatever the environment says', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'five', { attempt_count: 3, max_attempts: 5 })
    await tables.expired('jobs', 'two', { attempt_count: 2, max_attempts: 2 })
    const settings = readTableSettings({ JOB_MAX_ATTEMPTS: '3' })
    const result = await new Reaper(tables.pool, { settings }).runOnce()
    assert.deepEqual(result, { requeuedIds: ['five'], failedIds: ['two'] })
  })

  // E62
  test('a backoff in the future is waited for', async (t) => {
    const tables = await jobTables(t)
    let nowMs = NOW_MS
    const reaper = new Reaper(tables.pool, { nowMs: () => nowMs })
    await tables.expired('jobs', 'a', { lease_expires_at: at(-1), next_earliest_run_at: at(5_000) })
    assert.deepEqual((await reaper.runOnce()).requeuedIds, [])
    nowMs += 5_000
    assert.deepEqual((await reaper.runOnce()).requeuedIds, ['a'])
  })

  // X173
  test('a row without any time is given a default lease from when it was first seen', async (t) => {
    const tables = await jobTables(t)
    await tables.insert('asr_jobs', { id: 1, status: 'processing' })
    let nowMs = NOW_MS
    const reaper = new Reaper(tables.pool, { nowMs: () => nowMs })
    for (const [passMs, requeuedIds] of [
      [0, []],
      [300_000, []],
      [1, ['1']],
    ] as const) {
      nowMs += passMs
      assert.deepEqual((await reaper.runOnce()).requeuedIds, requeuedIds)
    }
  })

  // E59 X178
  test('the backoff in SQL is the one that is computed', async (t) => {
    const tables = await jobTables(t)
    const settings = readTableSettings({ QUEUE_RETRY_BACKOFF_MS_BASE: '300', QUEUE_RETRY_BACKOFF_MS_MAX: '50000' })
    const attempts = [0, 1, 2, 3, 7, 8, 9, 63, 64, 1_100]
    for (const attempt of attempts) {
      await tables.expired('jobs', String(attempt), { attempt_count: attempt, max_attempts: 2_000 })
    }
    await new Reaper(tables.pool, { settings, nowMs: () => NOW_MS }).runOnce()
    for (const attempt of attempts) {
      const row = await tables.row('jobs', String(attempt))
      assert.deepEqual(row.next_earliest_run_at, at(requeueDelayMs(attempt, settings)), `attempt ${attempt}`)
    }
  })

  // X173
  test('the lease of the environment is the silence that rows without one are allowed', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a', { lease_expires_at: null, last_heartbeat_at: secondsFromNow(-20) })
    const lasting = (seconds: string) =>
      new Reaper(tables.pool, { settings: readTableSettings({ DEFAULT_LEASE_SEC: seconds }) })
    assert.deepEqual((await lasting('60').runOnce()).requeuedIds, [])
    assert.deepEqual((await lasting('10').runOnce()).requeuedIds, ['a'])
  })
})
