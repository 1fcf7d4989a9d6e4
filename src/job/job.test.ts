import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeTime } from 'ulid'
import { newJobId } from './job.ts'

const NOW_MS = Date.UTC(2026, 10, 15)

// B16 X021 X115
test('an id is a ULID', () => {
  assert.match(newJobId(NOW_MS), /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
})

// B16
test('ids of two jobs created 2 ms apart sort in that order', () => {
  const first = newJobId(NOW_MS + 10)
  assert.ok(first < newJobId(NOW_MS + 12))
})

// X122
test('ids are strictly increasing within a millisecond, and when the clock goes back', () => {
  const ids = Array.from({ length: 10_000 }, () => newJobId(NOW_MS + 20))
  ids.push(newJobId(NOW_MS - 60_000), newJobId(NOW_MS + 20))
  assert.deepEqual(ids, ids.toSorted())
  assert.equal(new Set(ids).size, ids.length)
})

// I11 B16
test('the time in an id is the time given, not that of the machine', () => {
  const laterMs = Date.UTC(2100, 0, 1)
  assert.equal(decodeTime(newJobId(laterMs)), laterMs)
})
