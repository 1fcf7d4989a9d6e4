import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { open } from '../../src/index.ts'
import { capturingLog, type LogLine } from '../../src/testing/capture.ts'
import { openForTest, TestClock } from '../../src/testing/index.ts'
import { SCHEDULED_JOBS, type ScheduledJob, WorkerScheduler } from './index.ts'
import { Told } from './rig.ts'

const hourly: ScheduledJob = { name: 'quotas', cron: '0 0 * * * *', jobType: 'quota-check', jobData: { deep: true } }
const startMs = Date.UTC(2026, 0, 1, 0, 30)

/** The log, and what it was told. */
function told() {
  const lines: LogLine[] = []
  return { log: capturingLog(lines), texts: () => lines.map(({ text }) => text) }
}

describe('the scheduler', () => {
  // A135 A136 A137 X059
  test('logs each schedule that it starts and stops, and fires none when it is stopped', async () => {
    await using stage = await openForTest({ startMs })
    const { mill, clock } = stage
    const { log, texts } = told()
    const scheduler = new WorkerScheduler(mill, { log })
    await scheduler.start()
    assert.equal((await mill.schedules.list()).length, 5)
    assert.deepEqual(
      texts(),
      SCHEDULED_JOBS.map(({ name, cron }) => `Scheduled ${name}: ${cron}`),
    )
    await clock.advance('31m')
    assert.deepEqual(
      (await mill.jobs()).map(({ type }) => type).toSorted(),
      ['quota-check', 'session-cleanup'],
      'the previous run of a schedule is not over, so later ticks are left out',
    )
    await scheduler.stop()
    assert.deepEqual(
      texts().slice(5),
      SCHEDULED_JOBS.map(({ name }) => `Unscheduled ${name}`),
    )
    await clock.advance('1d')
    assert.equal((await mill.jobs()).length, 2)
  })

  // A138 X063 X065
  test('reschedules: only the new times fire, with the same data and the options of the type', async () => {
    await using stage = await openForTest({ startMs })
    const { mill, clock } = stage
    const { log, texts } = told()
    const worker = new Told((data) => data, { options: { attempts: 7 } }, {}, 'quota-check')
    const scheduler = new WorkerScheduler(mill, { schedules: [hourly], handled: [worker], log })
    await scheduler.start()
    await scheduler.reschedule('quotas', '* * * * * *')
    await mill.work([worker.definition], { keeper: false })
    await clock.advance('3s')
    await scheduler.reschedule('quotas', '0 0 12 * * *')
    await clock.advance('2h')
    const jobs = await mill.jobs()
    assert.deepEqual(
      jobs.map(({ runAtMs, result, attempts }) => [runAtMs - startMs, result, attempts]).toReversed(),
      [1_000, 2_000, 3_000].map((atMs) => [atMs, { deep: true }, 7]),
    )
    assert.deepEqual(texts(), [
      'Scheduled quotas: 0 0 * * * *',
      'Scheduled quotas: * * * * * *',
      'Scheduled quotas: 0 0 12 * * *',
    ])
  })

  // A139
  test('does not know what was never scheduled', async () => {
    await using stage = await openForTest()
    const scheduler = new WorkerScheduler(stage.mill)
    await scheduler.start()
    const unknown = { message: 'Unknown scheduled job: nightly', code: 'ERR_SCHEDULE_UNKNOWN' }
    await assert.rejects(scheduler.reschedule('nightly', '0 0 3 * * *'), unknown)
    assert.equal(await scheduler.unschedule('nightly'), false)
    await assert.rejects(scheduler.reschedule('quota-check', 'soon'), { code: 'ERR_OPTION_INVALID' })
  })

  // A140 X066
  test('started twice, or on two instances, enqueues a tick once', async () => {
    await using stage = await openForTest({ startMs })
    const { mill, clock } = stage
    const [one, other] = [1, 2].map(() => new WorkerScheduler(mill, { schedules: [hourly] }))
    await Promise.all([one?.start(), one?.start(), other?.start()])
    await clock.advance('31m')
    assert.equal((await mill.jobs()).length, 1)
  })

  // X064
  test('stops alone: another goes on, and what was rescheduled stays over a restart', async () => {
    await using stage = await openForTest({ startMs })
    const { mill, clock } = stage
    const { log, texts } = told()
    const [one, other] = [1, 2].map(() => new WorkerScheduler(mill, { schedules: [hourly], log, interval: '1s' }))
    await one?.start()
    await other?.start()
    await one?.reschedule('quotas', '0 45 * * * *')
    await one?.stop()
    await clock.advance('16m')
    assert.equal((await mill.jobs()).length, 1)
    await other?.stop()
    await one?.start()
    assert.equal(texts().at(-1), 'Scheduled quotas: 0 45 * * * *')
    assert.equal(await one?.unschedule('quotas'), true)
    await clock.advance('2h')
    assert.equal((await mill.jobs()).length, 1, 'removed for all')
    await one?.stop()
    await one?.stop()
    await one?.start()
    assert.equal((await mill.schedules.find('quotas'))?.cron, '0 0 * * * *')
  })

  test('can start after it failed to, and refuses what could not be stored', async () => {
    const mill = await open('memory:', { clock: new TestClock(startMs) })
    const twice = { code: 'ERR_OPTION_INVALID', message: /two schedules have one name/ }
    assert.throws(() => new WorkerScheduler(mill, { schedules: [hourly, hourly] }), twice)
    const misspelt: object = { jobs: [] }
    assert.throws(() => new WorkerScheduler(mill, misspelt), { code: 'ERR_OPTION_INVALID' })
    const bad = new WorkerScheduler(mill, { schedules: [{ ...hourly, cron: 'soon' }] })
    await assert.rejects(bad.start(), { code: 'ERR_OPTION_INVALID' })
    await assert.rejects(bad.start(), { code: 'ERR_OPTION_INVALID' })
    await bad.stop()
    await mill.close()
  })
})
