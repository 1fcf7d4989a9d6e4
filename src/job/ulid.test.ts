import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeTime, isValid } from 'ulid'
import { monotonicFactory } from './ulid.ts'

test('ids are ULIDs of their time, increase within a millisecond, and when the clock is set back', () => {
  const next = monotonicFactory()
  const ids = [1_000, 1_000, 1_000, 1_763_350_000_000, 1_763_349_999_000].map(next)
  assert.ok(ids.every((id) => isValid(id)))
  assert.deepEqual(ids, ids.toSorted())
  assert.equal(new Set(ids).size, ids.length)
  assert.deepEqual(ids.map(decodeTime), [1_000, 1_000, 1_000, 1_763_350_000_000, 1_763_350_000_000])
  assert.notEqual(monotonicFactory()(1_000), ids[0])
})
