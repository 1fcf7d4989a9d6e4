import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { z } from 'zod'
import { type Mill, open } from '../client/mill.ts'
import { schedulesOf } from '../engine/capability-checks.ts'
import { MemoryEngine, MemoryStore } from '../engines/memory/index.ts'
import { OptionError, PayloadError, UnknownScheduleError, UnsupportedError } from '../errors.ts'
import { type AnyJob, defineJob } from '../job/definition.ts'
import type { DeclaredSchedule } from '../job/schedule.ts'
import { TestClock } from '../testing/test-clock.ts'

const report = defineJob({
  type: 'report',
  payload: z.object({ month: z.string() }),
  priority: 2,
  attempts: 7,
  version: 3,
})

async function stage(t: TestContext, jobs: readonly AnyJob[] = [report]) {
  const clock = new TestClock()
  const store = new MemoryStore()
  const another = async (known: readonly AnyJob[] = []): Promise<Mill> => {
    const mill = await open(new MemoryEngine({ clock, store }), { clock, random: () => 0.5, jobs: known })
    t.after(() => mill.close())
    return mill
  }
  return { clock, store, another, mill: await another(jobs) }
}

const payload = { month: '2026-01' }
const minutely = { type: 'report', cron: '* * * * *', payload, overlap: 'allow' } as const

// A128 A138 X063
test('upsert adds and changes by name; reschedule keeps payload and options, and only the new times hold', async (t) => {
  const { clock, mill } = await stage(t)
  const { schedules } = mill
  const options = { priority: 1, tenant: { orgId: 'acme' } }
  await schedules.upsert('monthly', { ...minutely, cron: '0 0 1 * *', options })
  const moved = await schedules.reschedule('monthly', '*/10 * * * * *')
  assert.deepEqual([moved.payload, moved.options], [payload, options])
  await mill.keep()
  await clock.advance('1m')
  const jobs = await mill.jobs()
  assert.equal(jobs.length, 6)
  assert.deepEqual([jobs[0]?.priority, jobs[0]?.tenant, jobs[0]?.attempts], [1, { orgId: 'acme' }, 7])
  await schedules.upsert('monthly', { ...minutely, cron: '0 0 1 * *' })
  await clock.advance('1h')
  assert.equal((await mill.jobs()).length, 6)
  assert.equal((await schedules.find('monthly'))?.runs, 6)
  assert.equal((await schedules.list()).length, 1)
})

test('add refuses a name that is taken, and a process without the definition keeps what was known of the type', async (t) => {
  const { mill, another } = await stage(t)
  await mill.schedules.add('monthly', { ...minutely, type: report })
  await assert.rejects(mill.schedules.add('monthly', minutely), OptionError)
  const elsewhere = await another()
  const changed = await elsewhere.schedules.upsert('monthly', { ...minutely, cron: '0 4 * * *' })
  assert.deepEqual(changed.defaults, { priority: 2, attempts: 7, version: 3 })
  const other = await elsewhere.schedules.upsert('monthly', { ...minutely, type: 'letter' })
  assert.equal(other.defaults, null, 'it is of another type')
})

// A139
test('an unknown name is refused', async (t) => {
  const { mill } = await stage(t)
  const { schedules } = mill
  const isUnknown = (error: unknown) =>
    error instanceof UnknownScheduleError && error.message === 'Unknown scheduled job: nightly'
  await assert.rejects(schedules.reschedule('nightly', '* * * * *'), isUnknown)
  for (const act of ['pause', 'resume', 'runNow', 'preview'] as const) {
    await assert.rejects(schedules[act]('nightly'), isUnknown)
  }
  assert.equal(await schedules.unschedule('nightly'), false)
  assert.equal(await schedules.find('nightly'), null)
})

test('what could never run as meant is refused, and nothing is stored', async (t) => {
  const { mill } = await stage(t)
  const wrong = [
    { cron: '* * * *' },
    { tz: 'Mars/Base' },
    { limit: 0 },
    { missed: 'never' },
    { overlap: 'maybe' },
    { missed: 'all', overlap: 'skip' },
    { start: new Date(Number.NaN) },
    { start: new Date(2), end: new Date(1) },
    { options: { priority: 11 } },
    { type: 'no type' },
  ]
  for (const change of wrong) {
    // @ts-expect-error a caller without types can say anything
    await assert.rejects(mill.schedules.upsert('x', { ...minutely, ...change }), OptionError, JSON.stringify(change))
  }
  await assert.rejects(mill.schedules.upsert('no name', minutely), OptionError)
  await assert.rejects(mill.schedules.upsert('x', { ...minutely, payload: { month: 1 } }), PayloadError)
  await assert.rejects(mill.schedules.preview('* * * * *', { count: 0 }), OptionError)
  assert.deepEqual(await mill.schedules.list(), [])
})

test('an engine that cannot look a job up refuses schedules that may not overlap', async (t) => {
  const { mill } = await stage(t)
  Object.defineProperty(mill.engine, 'inspector', { value: undefined })
  await assert.rejects(mill.schedules.upsert('x', { ...minutely, overlap: 'skip' }), UnsupportedError)
  await mill.schedules.upsert('x', minutely)
})

test('paused it does not run; resumed it goes on from now, without a storm', async (t) => {
  const { clock, mill } = await stage(t)
  await mill.schedules.upsert('often', { ...minutely, missed: 'all' })
  await mill.keep()
  await clock.advance('2m')
  await mill.schedules.pause('often')
  await clock.advance('1h')
  assert.equal((await mill.jobs()).length, 2)
  const resumed = await mill.schedules.resume('often')
  assert.equal(resumed.nextAtMs, clock.nowMs() + 60_000)
  await clock.advance('1m')
  assert.equal((await mill.jobs()).length, 3)
})

test('run now enqueues at once, also while paused, and leaves the ticks as they are', async (t) => {
  const { clock, mill } = await stage(t)
  const before = await mill.schedules.upsert('monthly', { ...minutely, cron: '0 0 1 * *' })
  const { id, status } = await mill.schedules.runNow('monthly')
  assert.equal(status, 'enqueued')
  assert.equal((await mill.job(id))?.payload, JSON.stringify(payload))
  const after = await mill.schedules.find('monthly')
  assert.deepEqual([after?.nextAtMs, after?.runs, after?.lastJobId], [before.nextAtMs, 0, id])
  await mill.schedules.pause('monthly')
  await mill.schedules.runNow('monthly')
  assert.equal((await mill.jobs()).length, 2)
  await clock.advance('1s')
})

test('preview shows the next ten runs of a cron text or of a stored schedule, within its bounds', async (t) => {
  const { clock, mill } = await stage(t)
  const runs = await mill.schedules.preview('0 12 * * *', { tz: 'Europe/Berlin' })
  assert.equal(runs.length, 10)
  assert.equal(runs[0], Date.UTC(2026, 0, 1, 11))
  await mill.schedules.upsert('thrice', { ...minutely, limit: 3 })
  assert.deepEqual(
    (await mill.schedules.preview('thrice')).map((ms) => ms - clock.nowMs()),
    [60_000, 120_000, 180_000],
  )
})

test('expected but missing: a schedule that nobody has run is overdue', async (t) => {
  const { clock, mill } = await stage(t)
  await mill.schedules.upsert('often', minutely)
  await clock.advance('1m')
  assert.deepEqual(await mill.schedules.overdue(), [])
  await clock.advance('61s')
  assert.deepEqual(
    (await mill.schedules.overdue()).map(({ name }) => name),
    ['often'],
  )
  await mill.keep()
  await clock.advance('1s')
  assert.deepEqual(await mill.schedules.overdue(), [])
})

// X065
test('a type that the keeper does not know is enqueued by what was known when its schedule was stored', async (t) => {
  const { clock, mill, another } = await stage(t)
  await mill.schedules.upsert('known', minutely)
  const foreign = await another()
  await foreign.schedules.upsert('strange', { type: 'strange', cron: '* * * * *' })
  await foreign.keep()
  await clock.advance('1m')
  const [job] = await mill.jobs({ type: 'report' })
  assert.deepEqual([job?.priority, job?.attempts, job?.payloadVersion], [2, 7, 3])
  const [strange] = await mill.jobs({ type: 'strange' })
  assert.deepEqual([strange?.priority, strange?.attempts, strange?.payload], [5, 3, 'null'])
})

const declared = (schedule: DeclaredSchedule) => defineJob({ type: 'tidy', schedule, run: () => {} })

test('a declared schedule is stored when a worker with it starts, with or without a keeper of its own', async (t) => {
  const { clock, mill, another } = await stage(t, [])
  const runs: number[] = []
  const job = defineJob({ type: 'tidy', schedule: '0 */15 * * * *', run: () => void runs.push(clock.nowMs()) })
  await mill.work([job], { keeper: false })
  assert.equal((await mill.schedules.find('tidy'))?.cron, '0 */15 * * * *')
  await clock.advance('1h')
  assert.deepEqual(runs, [])
  await (await another()).keep()
  await clock.advance('1h')
  assert.equal(runs.length, 5)
})

// X064
test('what was changed at run time outlives a restart; what the code says anew is taken over', async (t) => {
  const { mill, another } = await stage(t, [])
  const start = async (schedule: DeclaredSchedule) => (await another()).keep({ jobs: [declared(schedule)] })
  const shown = async () => {
    const view = await mill.schedules.find('tidy')
    return [view?.cron, view?.payload, view?.paused]
  }
  await start({ cron: '0 3 * * *', payload: 1 })
  await mill.schedules.reschedule('tidy', '0 5 * * *')
  await mill.schedules.pause('tidy')
  await start({ cron: '0 3 * * *', payload: 1 })
  assert.deepEqual(await shown(), ['0 5 * * *', 1, true])
  await start({ cron: '0 3 * * *', payload: 2 })
  assert.deepEqual(await shown(), ['0 5 * * *', 2, true])
  await start({ cron: '0 4 * * *', payload: 2 })
  assert.deepEqual(await shown(), ['0 4 * * *', 2, true])
  assert.equal((await mill.schedules.find('tidy'))?.nextAtMs, null)
})

test('what a newer version stored beside it is kept', async (t) => {
  const { clock, mill } = await stage(t)
  await mill.schedules.upsert('often', minutely)
  const port = schedulesOf(mill.engine)
  const record = (await port.find('often')) ?? assert.fail()
  const body = JSON.stringify({ ...JSON.parse(record.body), colour: 'blue' })
  await port.save({ ...record, revision: 'newer', body }, record.revision, [])
  await mill.keep()
  await clock.advance('1m')
  await mill.schedules.pause('often')
  assert.equal(JSON.parse((await port.find('often'))?.body ?? '').colour, 'blue')
})

test('a payload that does not fit its declared schedule is refused when the worker starts', async (t) => {
  const { mill } = await stage(t, [])
  // @ts-expect-error the job has a payload, so its schedule needs one
  const job = defineJob({ type: 'report', payload: report.schema ?? assert.fail(), schedule: '* * * * *' })
  await assert.rejects(mill.keep({ jobs: [job] }), PayloadError)
})
