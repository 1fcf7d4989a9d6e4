import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TestClock } from '../../src/testing/test-clock.ts'
import { jobTables } from '../../test/fixtures/job-tables.ts'
import { capturedLog } from '../../test/fixtures/log-lines.ts'
import type { Database } from './database.ts'
import { Reaper } from './reaper.ts'
import type { RequeuedJob } from './reaper-report.ts'
import { startReaper } from './service.ts'
import { readTableSettings } from './settings.ts'

const COLUMNS = [
  ...[
    'id',
    'status',
    'locked_by',
    'lease_expires_at',
    'last_heartbeat_at',
    'attempt_count',
    'max_attempts',
    'fail_code',
  ],
  ...['fail_reason', 'stage', 'next_earliest_run_at', 'job_id', 'data'],
]

/** A database that answers at once with nothing to do, and says when the first statement of each run came. */
function idleDatabase(clock: TestClock): {
  readonly database: Database
  readonly runsMs: number[]
  fail: boolean
  takesMs: number
} {
  const state = {
    runsMs: [] as number[],
    fail: false,
    takesMs: 0,
    database: {
      query: async (text: string) => {
        if (text.includes('pg_attribute')) return { rows: COLUMNS.map((name) => ({ oid: '1', name, type: 'text' })) }
        if (text.includes('reaper:requeued')) {
          state.runsMs.push(clock.monotonicMs())
          if (state.fail) throw new Error('the database said no')
          if (state.takesMs > 0) await clock.sleep(state.takesMs)
        }
        return { rows: [{ held: 'true', id: null }] }
      },
    },
  }
  return state
}

describe('the interval', () => {
  // E32 E45
  test('runs at 0, 60 and 120 s, and never after its end', async () => {
    const clock = new TestClock()
    const { database, runsMs } = idleDatabase(clock)
    const service = startReaper(new Reaper(database, { clock, tables: ['jobs'] }))
    await clock.advance('130s')
    assert.deepEqual(runsMs, [0, 60_000, 120_000])
    await service.stop()
    await service.stop()
    await clock.advance('10m')
    assert.equal(runsMs.length, 3)
    assert.equal(clock.waiting, 0)
  })

  // E45 X007
  test('is the one of the environment', async () => {
    const clock = new TestClock()
    const { database, runsMs } = idleDatabase(clock)
    const settings = readTableSettings({ REAPER_INTERVAL_SEC: '7' })
    const service = startReaper(new Reaper(database, { clock, settings, tables: ['jobs'] }))
    await clock.advance('15s')
    assert.deepEqual(runsMs, [0, 7_000, 14_000])
    await service.stop()
  })

  // X186
  test('begins at the end of a slow run, so runs do not overlap', async () => {
    const clock = new TestClock()
    const state = idleDatabase(clock)
    state.takesMs = 90_000
    const service = startReaper(new Reaper(state.database, { clock, tables: ['jobs'] }))
    await clock.advance('310s')
    assert.deepEqual(state.runsMs, [0, 150_000, 300_000])
    const stopped = service.stop()
    await clock.advance('90s')
    await stopped
  })

  test('may be given, and nothing that is not an interval is taken', async () => {
    const clock = new TestClock()
    const { database, runsMs } = idleDatabase(clock)
    const reaper = new Reaper(database, { clock, tables: ['jobs'] })
    for (const everyMs of [0, -1, Number.NaN])
      assert.throws(() => startReaper(reaper, { everyMs }), { code: 'ERR_OPTION_INVALID' })
    // @ts-expect-error a misspelt option
    assert.throws(() => startReaper(reaper, { every: 5_000 }), /'every' is not an option of startReaper/)
    const service = startReaper(reaper, { everyMs: 5_000 })
    await clock.advance('11s')
    assert.deepEqual(runsMs, [0, 5_000, 10_000])
    await service.stop()
  })

  // E44
  test('goes on after a run that failed, which is logged', async () => {
    const clock = new TestClock()
    const { log, lines } = capturedLog()
    const state = idleDatabase(clock)
    state.fail = true
    const service = startReaper(new Reaper(state.database, { clock, log, tables: ['jobs'] }))
    await clock.advance('1s')
    assert.equal(lines('Reaper run failed').length, 1)
    assert.match(String(lines('Reaper run failed')[0]?.error), /the database said no/)
    assert.equal(lines('Reaper scanned').length, 0)
    state.fail = false
    await clock.advance('60s')
    assert.deepEqual(state.runsMs, [0, 60_000])
    assert.equal(lines('Reaper scanned').length, 1)
    assert.equal(lines('Reaper run failed').length, 1)
    assert.deepEqual(
      lines('Reaper works again').map(({ failed_runs }) => failed_runs),
      [1],
    )
    await service.stop()
  })

  // E32 E44
  test('on a real database: the first run meets a broken table, the next one works', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    await tables.pool.query('alter table jobs rename to jobs_away')
    const clock = new TestClock()
    const { log, written, lines } = capturedLog()
    const service = startReaper(new Reaper(tables.pool, { clock, log, tables: ['jobs'] }))
    await written('Reaper run failed', 1)
    await tables.pool.query('alter table jobs_away rename to jobs')
    await clock.advance('60s')
    await written('Reaper scanned', 1)
    assert.equal(lines('Job requeued').length, 1)
    await service.stop()
    assert.equal((await tables.row('jobs', 'a')).status, 'queued')
  })
})

describe('a dispatcher', () => {
  // E41 X189
  test('is told of requeued jobs, and of no others', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a', { attempt_count: 2 })
    await tables.expired('jobs', 'b', { attempt_count: 3 })
    const told: RequeuedJob[] = []
    const nowMs = Date.UTC(2030, 0, 1)
    await new Reaper(tables.pool, { nowMs: () => nowMs, republish: async (job) => void told.push(job) }).runOnce()
    assert.deepEqual(told, [{ table: 'jobs', id: 'a', attempt: 2, nextEarliestRunAt: new Date(nowMs + 2_000) }])
  })

  // X189
  test('that fails changes nothing: the row is queued, the failure is logged, the run goes on', async (t) => {
    const tables = await jobTables(t)
    for (const id of ['a', 'b']) await tables.expired('jobs', id)
    const { log, lines } = capturedLog()
    const republish = () => Promise.reject(new Error('the dispatcher is away'))
    const onReaped = () => {
      throw new Error('the listener is broken')
    }
    const result = await new Reaper(tables.pool, { log, republish, onReaped }).runOnce()
    assert.deepEqual(result.requeuedIds.toSorted(), ['a', 'b'])
    assert.equal(lines('Job could not be republished; its row is queued').length, 2)
    assert.equal(lines('A listener failed').length, 2)
    assert.equal((await tables.row('jobs', 'a')).status, 'queued')
  })
})
