import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseCron, previewCron } from './cron.ts'

/** Runs after an instant, as ISO text without milliseconds. */
function runs(text: string, zone: string, from: string, count: number): string[] {
  return previewCron(parseCron(text, zone), Date.parse(from), count).map((ms) =>
    new Date(ms).toISOString().replace('.000', ''),
  )
}

describe('the notation', () => {
  // A129 X062
  test('six fields begin with the second, five begin with the minute', () => {
    assert.deepEqual(runs('30 */15 * * * *', 'UTC', '2026-01-01T00:00:00Z', 2), [
      '2026-01-01T00:00:30Z',
      '2026-01-01T00:15:30Z',
    ])
    assert.deepEqual(runs('*/15 * * * *', 'UTC', '2026-01-01T00:00:00Z', 2), [
      '2026-01-01T00:15:00Z',
      '2026-01-01T00:30:00Z',
    ])
  })

  // A130 A131 A132 A133 A134 X061
  test('the schedules of the worker framework fall where they should', () => {
    const from = '2026-03-01T05:50:00Z'
    assert.deepEqual(runs('0 */15 * * * *', 'UTC', from, 4), [
      '2026-03-01T06:00:00Z',
      '2026-03-01T06:15:00Z',
      '2026-03-01T06:30:00Z',
      '2026-03-01T06:45:00Z',
    ])
    assert.deepEqual(runs('0 0 */6 * * *', 'UTC', from, 4), [
      '2026-03-01T06:00:00Z',
      '2026-03-01T12:00:00Z',
      '2026-03-01T18:00:00Z',
      '2026-03-02T00:00:00Z',
    ])
    assert.deepEqual(runs('0 0 3 * * *', 'UTC', from, 1), ['2026-03-02T03:00:00Z'])
    assert.deepEqual(runs('0 0 4 * * *', 'UTC', from, 1), ['2026-03-02T04:00:00Z'])
    assert.deepEqual(runs('0 0 * * * *', 'UTC', from, 2), ['2026-03-01T06:00:00Z', '2026-03-01T07:00:00Z'])
  })

  test('lists, ranges, steps, names and Sunday as 7', () => {
    assert.deepEqual(runs('0 9-17/4 * * MON-FRI', 'UTC', '2026-01-02T00:00:00Z', 4), [
      '2026-01-02T09:00:00Z',
      '2026-01-02T13:00:00Z',
      '2026-01-02T17:00:00Z',
      '2026-01-05T09:00:00Z',
    ])
    assert.deepEqual(runs('0 0 1,15 JAN,jul *', 'UTC', '2026-01-02T00:00:00Z', 2), [
      '2026-01-15T00:00:00Z',
      '2026-07-01T00:00:00Z',
    ])
    assert.deepEqual(runs('0 0 * * 7', 'UTC', '2026-01-01T00:00:00Z', 1), ['2026-01-04T00:00:00Z'])
    assert.deepEqual(runs('5/20 0 1 1 *', 'UTC', '2026-01-01T00:00:00Z', 3), [
      '2026-01-01T00:05:00Z',
      '2026-01-01T00:25:00Z',
      '2026-01-01T00:45:00Z',
    ])
  })

  test('a day and a weekday together mean either', () => {
    assert.deepEqual(runs('0 0 13 * FRI', 'UTC', '2026-02-01T00:00:00Z', 3), [
      '2026-02-06T00:00:00Z',
      '2026-02-13T00:00:00Z',
      '2026-02-20T00:00:00Z',
    ])
  })

  test('a 29th of February is found', () => {
    assert.deepEqual(runs('0 12 29 2 *', 'UTC', '2096-03-01T00:00:00Z', 1), ['2104-02-29T12:00:00Z'])
  })

  test('the run is strictly after, to the second', () => {
    assert.deepEqual(runs('0 0 3 * * *', 'UTC', '2026-01-01T02:59:59Z', 1), ['2026-01-01T03:00:00Z'])
    assert.deepEqual(runs('0 0 3 * * *', 'UTC', '2026-01-01T03:00:00Z', 1), ['2026-01-02T03:00:00Z'])
    assert.deepEqual(runs('* * * * * *', 'UTC', '2026-01-01T23:59:58Z', 2), [
      '2026-01-01T23:59:59Z',
      '2026-01-02T00:00:00Z',
    ])
  })

  test('a day that exists only in some years, or beside a weekday, is accepted', () => {
    assert.deepEqual(runs('0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', 1), ['2028-02-29T00:00:00Z'])
    // With both given either is enough, so the Mondays of February run.
    assert.deepEqual(runs('0 0 30 2 MON', 'UTC', '2026-02-01T00:00:00Z', 1), ['2026-02-02T00:00:00Z'])
    assert.deepEqual(runs('0 0 13 * FRI', 'UTC', '2026-03-01T00:00:00Z', 3), [
      '2026-03-06T00:00:00Z',
      '2026-03-13T00:00:00Z',
      '2026-03-20T00:00:00Z',
    ])
    assert.deepEqual(runs('*/59 * * * *', 'UTC', '2026-01-01T00:00:00Z', 1), ['2026-01-01T00:59:00Z'])
  })

  test('nonsense is refused', () => {
    for (const text of [
      '',
      '* * * *',
      '* * * * * * *',
      '60 * * * *',
      '* 24 * * *',
      '* * 0 * *',
      '* * * 13 *',
      '* * * * 8',
      '5-1 * * * *',
      '*/0 * * * *',
      'a * * * *',
      '1-2-3 * * * *',
      '*/5/2 * * * *',
      '*/ * * * *',
      '1-10/2/3 * * * *',
      '*/99999999 * * * *',
      '*/60 * * * *',
      '0 */24 * * *',
      '0 0 30 2 *',
      '0 0 31 4,6,9,11 *',
      '0 0 0 30,31 FEB ?',
    ]) {
      assert.throws(() => parseCron(text), { code: 'ERR_OPTION_INVALID' }, text)
    }
    assert.throws(() => parseCron('* * * * *', 'Mars/Base'), { code: 'ERR_OPTION_INVALID' })
  })
})

describe('daylight saving', () => {
  test('a skipped time runs once, at the moment the clocks jump (Berlin, 02:00 to 03:00)', () => {
    assert.deepEqual(runs('0 30 2 * * *', 'Europe/Berlin', '2026-03-28T00:00:00Z', 3), [
      '2026-03-28T01:30:00Z',
      '2026-03-29T01:00:00Z',
      '2026-03-30T00:30:00Z',
    ])
    assert.deepEqual(runs('0 15,45 2 * * *', 'Europe/Berlin', '2026-03-29T00:00:00Z', 2), [
      '2026-03-29T01:00:00Z',
      '2026-03-30T00:15:00Z',
    ])
  })

  test('a repeated time runs once, at its first occurrence (Berlin, 03:00 to 02:00)', () => {
    assert.deepEqual(runs('0 30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2), [
      '2026-10-25T00:30:00Z',
      '2026-10-26T01:30:00Z',
    ])
  })

  test('a schedule of every hour goes on in real time in both directions', () => {
    assert.deepEqual(runs('0 0 * * * *', 'Europe/Berlin', '2026-03-29T00:00:00Z', 3), [
      '2026-03-29T01:00:00Z',
      '2026-03-29T02:00:00Z',
      '2026-03-29T03:00:00Z',
    ])
    assert.deepEqual(runs('0 0 * * * *', 'Europe/Berlin', '2026-10-24T23:30:00Z', 4), [
      '2026-10-25T00:00:00Z',
      '2026-10-25T01:00:00Z',
      '2026-10-25T02:00:00Z',
      '2026-10-25T03:00:00Z',
    ])
  })

  test('midnight that does not exist runs when the day begins (Santiago, Cairo)', () => {
    // Santiago: 2026-09-06 00:00 becomes 01:00, UTC−4 to UTC−3. Cairo: 2026-04-24 00:00 becomes 01:00, UTC+2 to UTC+3.
    assert.deepEqual(runs('0 0 * * *', 'America/Santiago', '2026-09-05T12:00:00Z', 2), [
      '2026-09-06T04:00:00Z',
      '2026-09-07T03:00:00Z',
    ])
    assert.deepEqual(runs('0 0 * * *', 'Africa/Cairo', '2026-04-23T12:00:00Z', 2), [
      '2026-04-23T22:00:00Z',
      '2026-04-24T21:00:00Z',
    ])
  })

  test('midnight that comes twice runs once (Santiago, Cairo)', () => {
    assert.deepEqual(runs('30 23 * * *', 'America/Santiago', '2026-04-04T12:00:00Z', 2), [
      '2026-04-05T02:30:00Z',
      '2026-04-06T03:30:00Z',
    ])
    assert.deepEqual(runs('30 23 * * *', 'Africa/Cairo', '2026-10-29T12:00:00Z', 2), [
      '2026-10-29T20:30:00Z',
      '2026-10-30T21:30:00Z',
    ])
  })

  test('a jump of half an hour and offsets of quarters (Lord Howe, Kathmandu)', () => {
    // 2026-10-04 02:00 becomes 02:30, UTC+10:30 to UTC+11.
    assert.deepEqual(runs('10 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00:00Z', 2), [
      '2026-10-03T15:30:00Z',
      '2026-10-04T15:10:00Z',
    ])
    assert.deepEqual(runs('0 6 * * *', 'Asia/Kathmandu', '2026-01-01T00:00:00Z', 1), ['2026-01-01T00:15:00Z'])
  })

  test('every day of two years has exactly one run of a daily schedule, in zones with and without changes', () => {
    for (const zone of [
      'Europe/Berlin',
      'America/New_York',
      'America/Santiago',
      'Africa/Cairo',
      'Australia/Lord_Howe',
      'Asia/Tokyo',
    ]) {
      for (const text of ['0 0 * * *', '30 2 * * *', '30 23 * * *', '15 1 * * *']) {
        const cron = parseCron(text, zone)
        const found = previewCron(cron, Date.UTC(2025, 11, 31, 12), 730)
        const days = found.map((ms) => new Date(ms).toLocaleDateString('en-CA', { timeZone: zone }))
        assert.equal(new Set(days).size, 730, `${text} in ${zone}`)
        assert.ok(
          found.every((ms, index) => index === 0 || ms - (found[index - 1] ?? 0) < 26 * 3_600_000),
          `${text} in ${zone}`,
        )
      }
    }
  })
})
