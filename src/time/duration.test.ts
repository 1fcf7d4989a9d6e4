import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OptionError } from '../errors.ts'
import { DURATION_MS_MAX, formatDuration, parseDurationMs } from './duration.ts'

test('a duration is milliseconds or a number with a unit', () => {
  const cases: readonly (readonly [number | string, number])[] = [
    [0, 0],
    [1, 1],
    [0.4, 0],
    [1.5, 2],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['1.5s', 1_500],
    ['0s', 0],
    ['0.0004s', 0],
  ]
  for (const [given, expected] of cases) assert.equal(parseDurationMs(given, 'delay'), expected, String(given))
})

test('anything else is refused with the name of the option and what to give instead', () => {
  const wrong = [
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '',
    'soon',
    '30',
    '30 s',
    '-5s',
    '1e3s',
    '1w',
    '5S',
    's',
    '1.s',
    ' 5s',
    '5s\n',
  ]
  for (const given of wrong) {
    assert.throws(
      () => parseDurationMs(given, 'backoff.base'),
      (error) =>
        error instanceof OptionError &&
        error.code === 'ERR_OPTION_INVALID' &&
        /'backoff\.base'.*give .*'30s'/s.test(error.message),
      String(given),
    )
  }
})

test('what plain JavaScript passes by mistake is refused, not coerced', () => {
  for (const given of [undefined, null, {}, [], true, 5n]) {
    // @ts-expect-error the type forbids it; a caller without types can still do it
    assert.throws(() => parseDurationMs(given, 'timeout'), OptionError, String(given))
  }
})

test('a duration of more than a century is refused, so that no stored time can leave the calendar', () => {
  assert.equal(parseDurationMs(DURATION_MS_MAX, 'delay'), DURATION_MS_MAX)
  assert.throws(() => parseDurationMs(DURATION_MS_MAX + 1, 'delay'), /'delay' is longer than 36500 days/)
  assert.throws(() => parseDurationMs('36501d', 'delay'), OptionError)
  assert.throws(() => parseDurationMs(`${'9'.repeat(400)}d`, 'delay'), OptionError)
})

test('a duration is shown in the largest unit that it fills', () => {
  const shown = [-5, 0, 850.4, 999, 1_000, 59_999, 60_000, 7_199_999, 7_200_000, 86_400_000, 200 * 86_400_000]
  assert.deepEqual(shown.map(formatDuration), [
    '0 ms',
    '0 ms',
    '850 ms',
    '999 ms',
    '1s',
    '59s',
    '1m',
    '1h',
    '2h',
    '1d',
    '200d',
  ])
})
