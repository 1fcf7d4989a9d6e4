import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromIso, toIso } from './iso.ts'

const YEAR_9999_MS = Date.UTC(9999, 11, 31)

// B17 X022
test('a stored time is ISO-8601 UTC with milliseconds and reads back as it was', () => {
  assert.equal(toIso(0), '1970-01-01T00:00:00.000Z')
  fc.assert(
    fc.property(fc.integer({ min: 0, max: YEAR_9999_MS }), (ms) => {
      assert.match(toIso(ms), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.equal(fromIso(toIso(ms)), ms)
    }),
  )
})

// B17
test('text order is time order', () => {
  const time = fc.integer({ min: 0, max: YEAR_9999_MS })
  fc.assert(
    fc.property(time, time, (first, second) => {
      assert.equal(toIso(first) < toIso(second), first < second)
    }),
  )
})

// X022
test('a foreign time without milliseconds is understood', () => {
  assert.equal(fromIso('2026-11-15T18:13:20Z'), Date.UTC(2026, 10, 15, 18, 13, 20))
  assert.equal(fromIso('2026-11-15T19:13:20+01:00'), Date.UTC(2026, 10, 15, 18, 13, 20))
})
