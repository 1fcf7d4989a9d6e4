import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { OptionError } from '../errors.ts'
import type { Duration } from '../time/duration.ts'
import { BACKOFF_MAX_DEFAULT_MS, type Backoff, backoffMaxMs, backoffMs, checkBackoff } from './backoff.ts'

const least = (): number => 0
/** Math.random never reaches 1; the limit of what it can answer. */
const most = (): number => 1

const waits = (backoff: Backoff, count: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => backoffMs(backoff, index + 1, least))

// A10
test('an exponential wait never exceeds an hour unless the definition says so', () => {
  assert.equal(backoffMs({ kind: 'exponential', base: 60_000 }, 20, least), 3_600_000)
  assert.equal(BACKOFF_MAX_DEFAULT_MS, 3_600_000)
  assert.equal(backoffMs({ kind: 'exponential', base: '1m', max: '2h' }, 20, least), 7_200_000)
})

// A42
test('fixed waits are equal, exponential ones double from the base', () => {
  assert.deepEqual(waits({ kind: 'fixed', delay: 300 }, 3), [300, 300, 300])
  assert.deepEqual(waits({ kind: 'exponential', base: 100 }, 3), [100, 200, 400])
})

// A42 A10 X008
test('an exponential backoff doubles from its base up to an hour by default', () => {
  assert.deepEqual(waits({ kind: 'exponential', base: '5s' }, 4), [5_000, 10_000, 20_000, 40_000])
  assert.equal(backoffMs({ kind: 'exponential', base: '1s' }, 30, most), 3_600_000)
})

// B119 B120 X008 X104
const LEASED_QUEUE: Backoff = { kind: 'exponential', base: '1s', max: '60s', firstExponent: 1, jitter: { add: '1s' } }

test('with jitter, waits are min(base × 2^attempts, max) plus up to a second', () => {
  const ranges: readonly (readonly [number, number, number])[] = [
    [1, 2_000, 3_000],
    [2, 4_000, 5_000],
    [3, 8_000, 9_000],
    [6, 60_000, 61_000],
    [10, 60_000, 61_000],
  ]
  for (const [attempt, from, to] of ranges) {
    assert.equal(backoffMs(LEASED_QUEUE, attempt, least), from)
    assert.equal(backoffMs(LEASED_QUEUE, attempt, most), to)
  }
})

// C28 X008
test('without jitter, waits are exactly min(base × 2^attempts, max)', () => {
  const backoff: Backoff = { kind: 'exponential', base: '1s', max: '30s', firstExponent: 1 }
  assert.deepEqual(waits(backoff, 6), [2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  assert.equal(backoffMs(backoff, 1, most), 2_000)
})

// D23 D24 D25 D26 D27 D28 D29 X008
test('a list waits as it is written', () => {
  const list = (...delays: readonly Duration[]): Backoff => ({ kind: 'list', delays })
  assert.deepEqual(waits(list('1s', '5s', '30s', '5m', '30m'), 5), [1_000, 5_000, 30_000, 300_000, 1_800_000])
  assert.deepEqual(waits(list('1s', '5s', '30s'), 3), [1_000, 5_000, 30_000])
  assert.deepEqual(waits(list('1s', '10s', '60s'), 3), [1_000, 10_000, 60_000])
  assert.deepEqual(waits(list('5s', '60s'), 2), [5_000, 60_000])
})

// E59 X008 X178
test('an exponential backoff doubles from its base up to its maximum', () => {
  assert.deepEqual(
    waits({ kind: 'exponential', base: 1_000, max: 60_000 }, 8),
    [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000],
  )
})

test('a list that is too short repeats its last entry', () => {
  assert.deepEqual(waits({ kind: 'list', delays: ['1s', '2s'] }, 4), [1_000, 2_000, 2_000, 2_000])
})

// X104 X143
test('jitter: none keeps the wait, equal keeps at least half, full may reach zero, add comes after the cap', () => {
  const at = (jitter: NonNullable<Backoff['jitter']>, random: () => number): number =>
    backoffMs({ kind: 'exponential', base: '60s', max: '60s', jitter }, 1, random)
  assert.deepEqual([at('none', least), at('none', most)], [60_000, 60_000])
  assert.deepEqual([at('equal', least), at('equal', most)], [30_000, 60_000])
  assert.deepEqual([at('full', least), at('full', most)], [0, 60_000])
  assert.deepEqual([at({ add: '1s' }, least), at({ add: '1s' }, most)], [60_000, 61_000])
})

test('every wait is a whole, finite number of milliseconds within the bound that is checked at the door', () => {
  const duration = fc.integer({ min: 0, max: 10_000_000 })
  const jitter = fc.constantFrom<NonNullable<Backoff['jitter']>>('none', 'equal', 'full', { add: '1s' })
  const backoff = fc.oneof<[fc.Arbitrary<Backoff>, fc.Arbitrary<Backoff>, fc.Arbitrary<Backoff>]>(
    fc.record({ kind: fc.constant('fixed'), delay: duration, jitter }),
    fc.record({ kind: fc.constant('list'), delays: fc.array(duration, { minLength: 1, maxLength: 100 }), jitter }),
    fc.record({ kind: fc.constant('exponential'), base: duration, max: fc.constant(20_000_000), jitter }),
  )
  const attempt = fc.integer({ min: 1, max: 9_999 })
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  fc.assert(
    fc.property(backoff, attempt, random, (given, failed, answer) => {
      const waitMs = backoffMs(given, failed, () => answer)
      assert.ok(Number.isInteger(waitMs) && waitMs >= 0, `${waitMs}`)
      assert.ok(waitMs <= backoffMaxMs(given, 10_000), `${waitMs} > ${backoffMaxMs(given, 10_000)}`)
    }),
  )
})

test('the longest wait counts only failures that can be followed by another start', () => {
  const backoff: Backoff = { kind: 'list', delays: ['1s', '5s', '30s'] }
  assert.equal(backoffMaxMs(backoff, 1), 0)
  assert.equal(backoffMaxMs(backoff, 2), 1_000)
  assert.equal(backoffMaxMs(backoff, 4), 30_000)
  assert.equal(backoffMaxMs(LEASED_QUEUE, 10), 61_000)
})

test('a long list is bounded by its longest entry, wherever it stands', () => {
  const delays = Array.from({ length: 80 }, (_, index) => (index === 79 ? 9_000 : 10))
  assert.equal(backoffMaxMs({ kind: 'list', delays }, 100), 9_000)
})

test('a base of 0 stays 0 however often the job failed', () => {
  assert.equal(backoffMs({ kind: 'exponential', base: 0 }, 9_999, least), 0)
})

// A41
test('a backoff that cannot be kept is refused when it is defined', () => {
  const wrong: readonly unknown[] = [
    { kind: 'linear', base: '1s' },
    {},
    null,
    'exponential',
    { kind: 'fixed' },
    { kind: 'fixed', delay: '-1s' },
    { kind: 'list', delays: [] },
    { kind: 'list' },
    { kind: 'list', delays: ['1s', 'later'] },
    { kind: 'exponential', base: 'x' },
    { kind: 'exponential', base: '2m', max: '1m' },
    // Without a maximum of its own the hour applies: a longer base would be cut in silence.
    { kind: 'exponential', base: '2h' },
    { kind: 'exponential', base: '1s', firstExponent: 2 },
    { kind: 'fixed', delay: '1s', jitter: 'some' },
    { kind: 'fixed', delay: '1s', jitter: { add: 'x' } },
  ]
  for (const backoff of wrong) {
    // @ts-expect-error a caller without types, or a foreign producer, can give anything
    assert.throws(() => checkBackoff(backoff), OptionError, JSON.stringify(backoff))
  }
  checkBackoff(LEASED_QUEUE)
})
