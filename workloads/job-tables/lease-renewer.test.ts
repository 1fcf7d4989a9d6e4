import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { TestClock } from '../../src/testing/test-clock.ts'
import { systemClock } from '../../src/time/clock.ts'
import { jobTables } from '../../test/fixtures/job-tables.ts'
import { accepted, type Database, refused, type ServiceResult } from './database.ts'
import { openJobTables } from './job-tables.ts'
import { keepLease } from './lease-renewer.ts'
import { Reaper } from './reaper.ts'
import { readTableSettings } from './settings.ts'

const AWAY = refused('database_unavailable', 'away')

/** A keeper over answers that the test gives, and when it asked. */
function keeperWith(answers: () => Promise<ServiceResult<unknown>>, figures = { leaseSec: 300, heartbeatSec: 15 }) {
  const clock = new TestClock()
  const beatsMs: number[] = []
  const keeper = keepLease({
    id: 'a',
    clock,
    ...figures,
    beat: () => {
      beatsMs.push(clock.monotonicMs())
      return answers()
    },
  })
  return { clock, beatsMs, keeper }
}

describe('keepLease', () => {
  // E51
  test('beats every 15 s, and stops when told', async () => {
    const { clock, beatsMs, keeper } = keeperWith(async () => accepted(null))
    await clock.advance('50s')
    assert.deepEqual(beatsMs, [15_000, 30_000, 45_000])
    await keeper.stop()
    await clock.advance('5m')
    assert.equal(beatsMs.length, 3)
    assert.equal(keeper.signal.aborted, false)
    assert.equal(clock.waiting, 0)
  })

  // E51 X006
  test('beats as often as the environment says, and three times a lease at least', async () => {
    const often = keeperWith(async () => accepted(null), { leaseSec: 300, heartbeatSec: 4 })
    await often.clock.advance('9s')
    assert.deepEqual(often.beatsMs, [4_000, 8_000])
    await often.keeper.stop()
    const short = keeperWith(async () => accepted(null), { leaseSec: 9, heartbeatSec: 15 })
    await short.clock.advance('7s')
    assert.deepEqual(short.beatsMs, [3_000, 6_000])
    await short.keeper.stop()
  })

  // X185
  test('a refused beat aborts the signal at once', async () => {
    for (const code of ['lease_lost', 'lease_expired', 'deadline_passed'] as const) {
      const { clock, beatsMs, keeper } = keeperWith(async () => refused(code, 'no'))
      await clock.advance('15s')
      assert.equal(keeper.signal.aborted, true, code)
      assert.equal(keeper.signal.reason.code, 'ERR_LEASE_LOST')
      await clock.advance('5m')
      assert.equal(beatsMs.length, 1)
      await keeper.stop()
    }
  })

  test('an unreachable database is retried until the lease must have expired', async () => {
    let answer: ServiceResult<unknown> = AWAY
    const { clock, keeper } = keeperWith(async () => answer, { leaseSec: 60, heartbeatSec: 15 })
    await clock.advance('59s')
    assert.equal(keeper.signal.aborted, false)
    await clock.advance('1s')
    assert.equal(keeper.signal.aborted, true)
    await keeper.stop()
    const lucky = keeperWith(async () => answer, { leaseSec: 60, heartbeatSec: 15 })
    await lucky.clock.advance('40s')
    answer = accepted(null)
    await lucky.clock.advance('5m')
    assert.equal(lucky.keeper.signal.aborted, false)
    await lucky.keeper.stop()
  })

  test('a connection that never answers ends with the lease, too', async () => {
    const { clock, keeper } = keeperWith(() => new Promise(() => {}), { leaseSec: 60, heartbeatSec: 15 })
    await clock.advance('59s')
    assert.equal(keeper.signal.aborted, false)
    await clock.advance('1s')
    assert.equal(keeper.signal.aborted, true)
    await keeper.stop()
    await nextTurn()
    assert.equal(clock.waiting, 0)
  })

  // E03 E51
  test('a job that runs three leases long with heartbeats stays processing; without them it is requeued', async (t) => {
    const tables = await jobTables(t)
    const clock = new TestClock()
    const nowMs = () => clock.nowMs()
    const settings = readTableSettings({ DEFAULT_LEASE_SEC: '60', HEARTBEAT_SEC: '10' })
    let asked = 0
    const database: Database = {
      query: async (text, values) => {
        asked += 1
        return tables.pool.query(text, values).finally(() => {
          asked -= 1
        })
      },
    }
    const { claimJob, keepLease: keep, finishJob } = openJobTables(database, { settings, clock, nowMs })
    const reaper = new Reaper(tables.pool, { settings, nowMs })
    for (const id of ['kept', 'left']) {
      await tables.insert('jobs', { id })
      assert.equal((await claimJob(id, 'worker-1', undefined, { table: 'jobs' })).ok, true)
    }
    const keeper = keep('kept', 'worker-1', { table: 'jobs', attempt: 1 })
    const requeued: string[] = []
    for (let beats = 0; beats < 18; beats += 1) {
      await clock.advance('10s')
      // The beat is on its way to the database, whose answer takes real time.
      while (asked > 0) await systemClock.sleep(1)
      requeued.push(...(await reaper.runOnce()).requeuedIds)
    }
    assert.deepEqual(requeued, ['left'])
    assert.equal((await tables.row('jobs', 'kept')).status, 'processing')
    assert.equal(keeper.signal.aborted, false)
    await keeper.stop()
    const finished = await finishJob('kept', true, {}, { table: 'jobs', workerId: 'worker-1', attempt: 1 })
    assert.equal(finished.ok, true)
  })
})
