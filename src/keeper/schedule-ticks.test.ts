import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkSchedule, type ScheduleSpec } from '../job/schedule.ts'
import { dueTicks, nextTick, runId, STEP_TICKS_MAX, type Timed, tickAfterSetBack } from './schedule-ticks.ts'

const at = (text: string): number => Date.parse(text)
const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString().replace('.000', ''))
const timed = (spec: ScheduleSpec, runs = 0): Timed => ({ ...checkSchedule(spec), runs })

function ticksOf(schedule: Timed, from: string, count: number): readonly (string | null)[] {
  const ticks: (string | null)[] = []
  let ms: number | null = at(from)
  while (ms !== null && ticks.length < count) {
    ms = nextTick({ ...schedule, runs: schedule.runs + ticks.length }, ms)
    ticks.push(iso(ms))
  }
  return ticks
}

describe('the next tick', () => {
  // A129 A130 X062
  test('six fields begin with the second', () => {
    assert.deepEqual(ticksOf(timed({ cron: '0 */15 * * * *' }), '2026-01-01T00:00:01Z', 4), [
      '2026-01-01T00:15:00Z',
      '2026-01-01T00:30:00Z',
      '2026-01-01T00:45:00Z',
      '2026-01-01T01:00:00Z',
    ])
  })

  // A141
  test('start, end and limit bound the runs', () => {
    const cron = '0 0 * * *'
    const start = new Date('2026-03-01T00:00:00Z')
    assert.deepEqual(ticksOf(timed({ cron, start }), '2026-01-01T00:00:00Z', 1), ['2026-03-01T00:00:00Z'])
    const end = new Date('2026-01-03T00:00:00Z')
    assert.deepEqual(ticksOf(timed({ cron, end }), '2026-01-01T00:00:00Z', 9), [
      '2026-01-02T00:00:00Z',
      '2026-01-03T00:00:00Z',
      null,
    ])
    assert.deepEqual(ticksOf(timed({ cron, limit: 2 }), '2026-01-01T00:00:00Z', 9), [
      '2026-01-02T00:00:00Z',
      '2026-01-03T00:00:00Z',
      null,
    ])
    assert.equal(nextTick(timed({ cron, end }), at('2026-02-01T00:00:00Z')), null)
  })

  // X061
  test('tz wins over timezone, and without either it is UTC', () => {
    const noon = '0 12 * * *'
    const first = (spec: ScheduleSpec) => ticksOf(timed(spec), '2026-01-01T00:00:00Z', 1)[0]
    assert.equal(first({ cron: noon }), '2026-01-01T12:00:00Z')
    assert.equal(first({ cron: noon, timezone: 'Europe/Berlin' }), '2026-01-01T11:00:00Z')
    assert.equal(first({ cron: noon, tz: 'America/New_York', timezone: 'Europe/Berlin' }), '2026-01-01T17:00:00Z')
  })

  test('clocks that jump: one run a day, also where midnight does not exist, or comes twice', () => {
    const daily = (tz: string, from: string) => ticksOf(timed({ cron: '0 0 * * *', tz }), from, 3)
    // Santiago goes from 23:59:59 on the 5th of September 2026 to 01:00, and back to 23:00 on the 4th of April.
    assert.deepEqual(daily('America/Santiago', '2026-09-04T12:00:00Z'), [
      '2026-09-05T04:00:00Z',
      '2026-09-06T04:00:00Z',
      '2026-09-07T03:00:00Z',
    ])
    assert.deepEqual(daily('America/Santiago', '2026-04-03T12:00:00Z'), [
      '2026-04-04T03:00:00Z',
      '2026-04-05T04:00:00Z',
      '2026-04-06T04:00:00Z',
    ])
    // Cairo goes from 23:59:59 on the 23rd of April 2026 to 01:00, and from midnight back to 23:00 on the 29th of October.
    assert.deepEqual(daily('Africa/Cairo', '2026-04-22T12:00:00Z'), [
      '2026-04-22T22:00:00Z',
      '2026-04-23T22:00:00Z',
      '2026-04-24T21:00:00Z',
    ])
    assert.deepEqual(daily('Africa/Cairo', '2026-10-28T12:00:00Z'), [
      '2026-10-28T21:00:00Z',
      '2026-10-29T22:00:00Z',
      '2026-10-30T22:00:00Z',
    ])
  })
})

describe('due ticks', () => {
  const everySecond = (missed: NonNullable<ScheduleSpec['missed']>, more: Partial<ScheduleSpec> = {}, runs = 0) =>
    timed({ cron: '* * * * * *', missed, ...more }, runs)
  const due = at('2026-01-01T00:00:00Z')

  // X066
  test('one: only the last of those missed, however many', () => {
    assert.deepEqual(dueTicks(everySecond('one'), due, due + 10_500, 0), {
      ticks: [due + 10_000],
      seenMs: due + 10_500,
      missed: { count: 10, isLeast: false, firstMs: due },
    })
    const year = 365 * 86_400_000
    const startedAt = performance.now()
    assert.deepEqual(dueTicks(everySecond('one'), due, due + year, 0).ticks, [due + year])
    // It takes no time to speak of, and a walk minutes.
    assert.ok(performance.now() - startedAt < 20_000, 'walked through a year of seconds')
    const monthly = timed({ cron: '0 0 1 * *' })
    assert.deepEqual(dueTicks(monthly, due, at('2027-06-15T00:00:00Z'), 0).ticks.map(iso), ['2027-06-01T00:00:00Z'])
  })

  test('all: each in its turn, so many in one step, and never beyond the limit', () => {
    const { ticks, seenMs } = dueTicks(everySecond('all'), due, due + 1_000_000, 0)
    assert.equal(ticks.length, STEP_TICKS_MAX)
    assert.deepEqual([ticks[0], ticks.at(-1), seenMs], [due, due + 99_000, due + 99_000])
    assert.deepEqual(dueTicks(everySecond('all', { limit: 5 }, 2), due, due + 10_000, 0).ticks.length, 3)
  })

  test('skip: none that is older than a change of keepers takes', () => {
    const hourly = timed({ cron: '0 * * * *', missed: 'skip' })
    assert.deepEqual(dueTicks(hourly, due, due + 9_000, 10_000).ticks, [due])
    assert.deepEqual(dueTicks(hourly, due, due + 11_000, 10_000).ticks, [])
    assert.deepEqual(dueTicks(hourly, due, due + 7_200_500, 10_000).ticks, [due + 7_200_000])
  })

  test('none after the end', () => {
    const end = new Date(due + 5_000)
    assert.deepEqual(dueTicks(everySecond('one', { end }), due, due + 60_000, 0).ticks, [due + 5_000])
    assert.equal(dueTicks(everySecond('all', { end }), due, due + 60_000, 0).ticks.length, 6)
    assert.deepEqual(dueTicks(everySecond('all', { end }), due + 6_000, due + 60_000, 0).ticks, [])
  })
})

// X066
test('a run has one id: a ULID of its time, different for every name and tick', () => {
  const id = runId('nightly', at('2026-01-01T03:00:00Z'))
  assert.match(id, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
  assert.equal(id, runId('nightly', at('2026-01-01T03:00:00Z')))
  const others = [runId('weekly', at('2026-01-01T03:00:00Z')), runId('nightly', at('2026-01-01T03:00:01Z'))]
  assert.equal(new Set([id, ...others]).size, 3)
  assert.ok(id < (others[1] ?? ''), 'a later run sorts after an earlier one')
})

describe('a clock set back', () => {
  const after = (cron: string, next: string, now: string): string | null =>
    iso(tickAfterSetBack(timed({ cron }), at(next), at(now)))

  test('a schedule that would wait for several ticks goes on from now', () => {
    assert.equal(after('* * * * *', '2026-01-01T12:01:00Z', '2026-01-01T11:00:30Z'), '2026-01-01T11:01:00Z')
  })

  test('a single tick that has run does not run twice', () => {
    assert.equal(after('30 11 * * *', '2026-01-02T11:30:00Z', '2026-01-01T11:00:00Z'), null)
  })

  test('seconds between the clocks of two keepers are no step', () => {
    assert.equal(after('* * * * * *', '2026-01-01T12:00:05Z', '2026-01-01T12:00:00Z'), null)
  })

  test('what runs again has another id than the first time', () => {
    const tickMs = at('2026-01-01T11:01:00Z')
    assert.equal(runId('often', tickMs), runId('often', tickMs, 0))
    assert.notEqual(runId('often', tickMs), runId('often', tickMs, 1))
  })
})
