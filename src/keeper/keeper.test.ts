import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { newJob } from '../../test/fixtures/new-job.ts'
import { housekeepingSchedules } from '../../workloads/framework/schedules.ts'
import { type Mill, open } from '../client/mill.ts'
import { leadershipOf, schedulesOf } from '../engine/capability-checks.ts'
import type { RecordKind } from '../engine/records.ts'
import { MemoryEngine, MemoryStore } from '../engines/memory/index.ts'
import type { MillEvents } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { capturingLog, type LogLine } from '../testing/capture.ts'
import { TestClock } from '../testing/test-clock.ts'
import { fire } from './schedule-ticks.ts'

const beat = defineJob({ type: 'beat' })

/** Mills over one store, as processes over one database are. */
async function mills(t: TestContext, count: number) {
  const clock = new TestClock()
  const store = new MemoryStore()
  const fired: MillEvents['schedule.fired'][] = []
  const opened: Mill[] = []
  for (let index = 0; index < count; index += 1) {
    const mill = await open(new MemoryEngine({ clock, store }), { clock, random: () => 0.5, jobs: [beat] })
    mill.events.on('schedule.fired', (event) => void fired.push(event))
    t.after(() => mill.close())
    opened.push(mill)
  }
  const [first, second = first] = opened
  assert.ok(first && second)
  return { clock, first, second, fired }
}

const ticks = (fired: readonly MillEvents['schedule.fired'][]) =>
  fired.map(({ tickMs }) => new Date(tickMs).toISOString().slice(11, 19))

// A140
test('of two keepers one works; each tick is enqueued once', async (t) => {
  const { clock, first, second, fired } = await mills(t, 2)
  await first.schedules.upsert('beat', { type: beat, cron: '* * * * * *', overlap: 'allow' })
  const keepers = [await first.keep(), await second.keep()]
  await clock.advance('10s')
  assert.deepEqual(
    keepers.map(({ leads }) => leads),
    [true, false],
  )
  assert.equal(fired.length, 10)
  assert.equal((await first.jobs()).length, 10)
})

test('a keeper that stops lets another take over within the interval, and no tick is lost or run twice', async (t) => {
  const { clock, first, second, fired } = await mills(t, 2)
  await first.schedules.upsert('beat', { type: beat, cron: '* * * * * *', missed: 'all' })
  const active = await first.keep()
  const standby = await second.keep()
  await clock.advance('4s')
  await active.stop()
  assert.equal(active.leads, false)
  await clock.advance('6s')
  assert.equal(standby.leads, true)
  assert.deepEqual(
    ticks(fired),
    Array.from({ length: 10 }, (_, n) => `00:00:${String(n + 1).padStart(2, '0')}`),
  )
})

test('a keeper that is gone without a word is replaced within twice its interval', async (t) => {
  const { clock, first, second } = await mills(t, 2)
  const active = await first.keep()
  const standby = await second.keep()
  await clock.advance('11s')
  // Its store is gone for it, so it neither renews nor resigns.
  await first.engine.close()
  const goneAtMs = clock.monotonicMs()
  for (let turn = 0; turn < 100 && !standby.leads; turn += 1) await clock.advance(100)
  const tookMs = clock.monotonicMs() - goneAtMs
  assert.equal(standby.leads, true)
  assert.ok(tookMs <= 10_000, `it took ${tookMs} ms`)
  assert.equal(active.leads, false)
})

test('one that was paused past its lease asks before it acts', async (t) => {
  const { clock, first, second, fired } = await mills(t, 2)
  await first.schedules.upsert('beat', { type: beat, cron: '*/30 * * * * *', missed: 'all' })
  const paused = await first.keep()
  await clock.advance('1s')
  const { save } = first.engine.records ?? assert.fail()
  // As if the process slept: what it writes reaches nobody, and its clock goes on.
  let isAsleep = true
  Object.assign(first.engine.records ?? {}, {
    save: (...args: Parameters<typeof save>) => (isAsleep ? Promise.reject(new Error('asleep')) : save(...args)),
  })
  const awake = await second.keep()
  await clock.advance('31s')
  assert.deepEqual([paused.leads, awake.leads], [false, true])
  isAsleep = false
  await clock.advance('60s')
  assert.deepEqual([paused.leads, awake.leads], [false, true])
  assert.deepEqual(ticks(fired), ['00:00:30', '00:01:00', '00:01:30'])
})

test('one whose lease ran out while the store kept it waiting goes on when it still leads', async (t) => {
  const { clock, first, fired } = await mills(t, 1)
  await first.schedules.upsert('beat', { type: beat, cron: '*/30 * * * * *', missed: 'all' })
  const keeper = await first.keep()
  await clock.advance('1s')
  const port = first.engine.records ?? assert.fail()
  const { list, save } = port
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  t.after(() => answer())
  const late = <Answer>(kind: RecordKind, call: () => Promise<Answer>): Promise<Answer> =>
    kind === 'leader' ? answered.then(call) : call()
  Object.assign(port, {
    list: (kind: RecordKind) => late(kind, () => list(kind)),
    save: (...given: Parameters<typeof save>) => late(given[0], () => save(...given)),
  })
  await clock.advance('35s')
  assert.deepEqual([keeper.leads, ticks(fired)], [false, []])
  answer()
  await clock.advance('30s')
  assert.deepEqual([keeper.leads, ticks(fired)], [true, ['00:00:30', '00:01:00']])
})

// A140 X066
test('who fires a tick from an old reading of its schedule changes nothing', async (t) => {
  const { clock, first } = await mills(t, 1)
  await first.schedules.upsert('beat', { type: beat, cron: '* * * * *', overlap: 'allow' })
  const { engine, events } = first
  const prepare = () => Promise.resolve(newJob({ type: 'beat' }))
  const parts = { engine, events, clock, definitions: new Map(), prepare }
  const old = (await schedulesOf(engine).find('beat')) ?? assert.fail()
  await clock.advance('1m')
  const fresh = await fire(parts, old, 0)
  assert.ok(fresh)
  await first.schedules.pause('beat')
  await clock.advance('1m')
  assert.equal(await fire(parts, old, 0), null)
  assert.equal(await fire(parts, fresh, 0), null)
  assert.equal((await first.schedules.find('beat'))?.paused, true)
  assert.equal((await first.jobs()).length, 1)
})

// X063
test('a schedule that cannot be fired is reported, and the others go on', async (t) => {
  const { clock, first, fired } = await mills(t, 1)
  await first.schedules.upsert('good', { type: beat, cron: '* * * * *', overlap: 'allow' })
  const broken = { name: 'broken', revision: '1', nextAtMs: clock.nowMs(), body: 'no json' }
  await schedulesOf(first.engine).save(broken, null, [])
  const errors: MillEvents['keeper.error'][] = []
  first.events.on('keeper.error', (event) => void errors.push(event))
  await first.keep()
  await clock.advance('2m')
  assert.equal(fired.length, 2)
  assert.equal(errors[0]?.during, 'schedule broken')
  assert.ok(errors.length <= 26, `${errors.length} reports in two minutes: it spins`)
  assert.deepEqual(
    (await first.schedules.list()).map(({ name }) => name),
    ['good'],
  )
})

// X066
test('a tick is skipped while the run before is queued, and none is when runs may overlap', async (t) => {
  const { clock, first, fired } = await mills(t, 1)
  const skipped: MillEvents['schedule.skipped'][] = []
  first.events.on('schedule.skipped', (event) => void skipped.push(event))
  await first.schedules.upsert('careful', { type: beat, cron: '* * * * *' })
  await first.keep()
  await clock.advance('3m')
  assert.deepEqual([fired.length, skipped.length], [1, 2])
  assert.equal((await first.schedules.find('careful'))?.skips, 2)
  await first.cancel(fired[0]?.jobId ?? '')
  await clock.advance('1m')
  assert.equal(fired.length, 2)
})

// A141
test('limit and end stop it; a schedule of next year neither fires now nor keeps anybody busy', async (t) => {
  const { clock, first, fired } = await mills(t, 1)
  const { schedules } = first
  await schedules.upsert('twice', { type: beat, cron: '* * * * *', limit: 2, overlap: 'allow' })
  await schedules.upsert('over', { type: beat, cron: '* * * * *', end: new Date(clock.nowMs() - 1) })
  await schedules.upsert('far', { type: beat, cron: '0 0 1 12 *' })
  await first.keep()
  let lists = 0
  const port = first.engine.records ?? assert.fail()
  const { list } = port
  Object.assign(port, {
    list: (kind: RecordKind) => {
      if (kind === 'schedule') lists += 1
      return list(kind)
    },
  })
  await clock.advance('10m')
  assert.deepEqual(
    fired.map(({ name }) => name),
    ['twice', 'twice'],
  )
  assert.ok(lists <= 125, `${lists} looks in ten minutes`)
  assert.equal((await schedules.find('twice'))?.nextAtMs, null)
})

// A136 A137 X064
test('starting registers and logs each schedule, stopping logs each and unschedules none', async (t) => {
  const clock = new TestClock()
  const lines: LogLine[] = []
  const mill = await open('memory:', { clock, log: capturingLog(lines) })
  t.after(() => mill.close())
  const keeper = await mill.keep({ schedules: housekeepingSchedules })
  const registered = lines.filter(({ text }) => text === 'Schedule registered')
  assert.deepEqual(
    registered.map(({ fields }) => [fields.schedule, fields.cron]),
    housekeepingSchedules.map(({ name, cron }) => [name, cron]),
  )
  assert.equal((await mill.schedules.list()).length, 5)
  await keeper.stop()
  const kept = lines.filter(({ text }) => text === 'Schedule no longer kept here')
  assert.deepEqual(
    kept.map(({ fields }) => fields.schedule),
    housekeepingSchedules.map(({ name }) => name),
  )
  await clock.advance('2h')
  assert.deepEqual(await mill.jobs(), [])
  assert.equal((await mill.schedules.list()).length, 5)
})

// A128 A130 A131 A132 A133 A134 A135
test('the five schedules of the worker framework run when, and with what, they should', async (t) => {
  const { clock, first, fired } = await mills(t, 1)
  assert.deepEqual(
    housekeepingSchedules.map(({ name, type, cron, payload }) => [name, type, cron, payload]),
    [
      ['session-cleanup', 'session-cleanup', '0 */15 * * * *', { maxAge: 86_400_000 }],
      ['memory-importance-decay', 'memory-importance-decay', '0 0 */6 * * *', { decayFactor: 0.99 }],
      ['index-optimization', 'index-optimization', '0 0 3 * * *', { threshold: 0.8 }],
      ['pattern-training-daily', 'pattern-training', '0 0 4 * * *', { batchSize: 1_000, epochs: 5 }],
      ['quota-check', 'quota-check', '0 0 * * * *', {}],
    ],
  )
  const schedules = housekeepingSchedules.map((schedule) => ({ ...schedule, overlap: 'allow' as const }))
  await first.keep({ schedules, interval: '10m' })
  await clock.advance('1d')
  const count = (name: string) => fired.filter((event) => event.name === name).length
  assert.deepEqual(
    housekeepingSchedules.map(({ name }) => count(name)),
    [96, 4, 1, 1, 24],
  )
  assert.deepEqual(ticks(fired.filter(({ name }) => name === 'index-optimization')), ['03:00:00'])
  assert.deepEqual(ticks(fired.filter(({ name }) => name === 'pattern-training-daily')), ['04:00:00'])
  const [training] = await first.jobs({ type: 'pattern-training' })
  assert.deepEqual(JSON.parse(training?.payload ?? ''), { batchSize: 1_000, epochs: 5 })
})

test('two keepers that both believe they lead run a tick once', async (t) => {
  const { clock, first, second, fired } = await mills(t, 2)
  for (const { engine } of [first, second]) {
    const { list, save } = engine.records ?? assert.fail()
    Object.assign(engine.records ?? {}, {
      list: async (kind: RecordKind) => (kind === 'leader' ? [] : list(kind)),
      save: async (...args: Parameters<typeof save>) => (args[0] === 'leader' ? [] : save(...args)),
    })
  }
  await first.schedules.upsert('beat', { type: beat, cron: '* * * * *', overlap: 'allow' })
  const keepers = [await first.keep(), await second.keep()]
  await clock.advance('3m')
  assert.deepEqual(
    keepers.map(({ leads }) => leads),
    [true, true],
  )
  assert.equal(fired.length, 3)
})

test('a keeper that leaves reaping out does not keep one away that reaps', async (t) => {
  const { clock, first, second } = await mills(t, 2)
  const passes: string[] = []
  second.events.on('reaper.pass', () => void passes.push('pass'))
  await first.keep({ reap: false })
  const full = await second.keep()
  await clock.advance('1s')
  assert.equal(full.leads, true)
  assert.equal(passes.length, 1)
})

test('nothing waits once a keeper has stopped; settings that make no sense are refused', async (t) => {
  const { clock, first } = await mills(t, 1)
  const before = clock.waiting
  const keeper = await first.keep()
  await clock.advance('7s')
  await keeper.stop()
  await keeper.stop()
  assert.equal(clock.waiting, before)
  assert.equal(await leadershipOf(first.engine).leader('keeper:reap+schedules+retention+history'), null)
  await assert.rejects(first.keep({ interval: 0 }), /'interval' is 0 ms/)
  await assert.rejects(first.keep({ reap: 0 }), /'reap' is 0 ms/)
})
