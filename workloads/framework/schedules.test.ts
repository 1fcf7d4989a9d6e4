import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob } from '../../src/index.ts'
import { openForTest } from '../../src/testing/index.ts'
import { isJobType, JOB_TYPES, type ScheduledJob, specOf, toSchedule } from './index.ts'
import { housekeepingSchedules } from './schedules.ts'

const hourly: ScheduledJob = { name: 'quotas', cron: '0 0 * * * *', jobType: 'quota-check', jobData: { deep: true } }

describe("a schedule in the framework's form", () => {
  // A128
  test('has a name, a cron, a type, data and bounds', () => {
    const startDate = new Date(Date.UTC(2026, 0, 1, 2))
    const endDate = new Date(Date.UTC(2026, 0, 2))
    assert.deepEqual(toSchedule({ ...hourly, options: { timezone: 'Europe/Berlin', startDate, endDate, limit: 2 } }), {
      name: 'quotas',
      cron: '0 0 * * * *',
      type: 'quota-check',
      payload: { deep: true },
      timezone: 'Europe/Berlin',
      start: startDate,
      end: endDate,
      limit: 2,
    })
    assert.equal(toSchedule({ ...hourly, options: { tz: 'UTC' } }).tz, 'UTC')
    const misspelt = { ...hourly, option: { tz: 'UTC' } }
    assert.throws(() => toSchedule(misspelt), /did you mean 'options'/)
  })

  // A128 A141
  test('runs with its data between its dates, as often as it may', async () => {
    for (const [options, hours] of [
      [{ limit: 2 }, [1, 2]],
      [{ startDate: new Date(Date.UTC(2026, 0, 1, 3)) }, [3, 4]],
      [{ endDate: new Date(Date.UTC(2026, 0, 1, 1)) }, [1]],
      [{ endDate: new Date(Date.UTC(2025, 0, 1)) }, []],
    ] as const) {
      await using stage = await openForTest({ startMs: Date.UTC(2026, 0, 1, 0, 30) })
      const { mill, clock } = stage
      const job = defineJob({ ...specOf('quota-check'), run: () => new Date(clock.nowMs()).getUTCHours() })
      await mill.keep({ schedules: [toSchedule({ ...hourly, options })], jobs: [job], interval: '10m' })
      await mill.work([job], { keeper: false, poll: '10m' })
      await clock.advance('4h')
      const jobs = (await mill.jobs()).toReversed()
      assert.deepEqual(
        jobs.map(({ result }) => result),
        hours,
      )
      // A scheduled job has its type's defaults, too.
      for (const { payload, priority } of jobs) assert.deepEqual([payload, priority], ['{"deep":true}', 10])
    }
  })

  test('is refused when its type or an option is not known', () => {
    const refused = (schedule: object) => () => toSchedule({ ...hourly, ...schedule })
    assert.throws(refused({ jobType: 'send-fax' }), { code: 'ERR_TYPE_UNKNOWN' })
    assert.throws(refused({ options: { every: 5 } }), { code: 'ERR_OPTION_INVALID', message: /'every'.*timezone/ })
  })
})

// A130..A135
test('the five schedules enqueue listed types with the options of their types', async () => {
  assert.equal(housekeepingSchedules.length, 5)
  assert.ok(housekeepingSchedules.every(({ type }) => isJobType(type)))
  await using stage = await openForTest()
  const { mill, clock } = stage
  await mill.keep({
    schedules: housekeepingSchedules,
    jobs: Object.values(JOB_TYPES).map((type) => defineJob(specOf(type))),
    interval: '10m',
  })
  await clock.advance('1d')
  const found = (await mill.jobs()).map(({ type, priority, attempts }) => [type, priority, attempts] as const)
  assert.deepEqual(found.toSorted(), [
    ['index-optimization', 10, 3],
    ['memory-importance-decay', 10, 3],
    ['pattern-training', 9, 2],
    ['quota-check', 10, 3],
    ['session-cleanup', 8, 3],
  ])
})
