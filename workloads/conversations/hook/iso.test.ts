import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toIso } from './iso.ts'

test("the hook's times are those of Date, on every day until 2130, and at the last moment of 9999", () => {
  const DAY_MS = 86_400_000
  for (let day = 0; day < 160 * 365.25; day += 1) {
    const ms = day * DAY_MS + ((day * 7_919_993) % DAY_MS)
    assert.equal(toIso(ms), new Date(ms).toISOString())
  }
  for (const ms of [0, 951_782_400_000, 4_107_542_399_999, 253_402_300_799_999]) {
    assert.equal(toIso(ms), new Date(ms).toISOString())
  }
})
