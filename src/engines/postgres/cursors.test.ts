import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cursors } from './cursors.ts'
import type { JobRow } from './rows.ts'

const row = (runMs: number, type = 'greet'): JobRow => ({
  id: 'a',
  type,
  payload: null,
  payload_version: 1,
  priority: 5,
  attempt_count: 1,
  max_attempts: 3,
  created_ms: 0,
  run_ms: runMs,
  arrival: 1,
  idempotency_key: null,
  latest_key: null,
  tenant: null,
  options: null,
  after: null,
  expires_ms: null,
  place: '(0,1)',
})

test('a cursor starts right before the last job that was taken, and not at an invalid time', () => {
  const cursors = new Cursors()
  cursors.measure(false)()
  cursors.advance([...Array.from({ length: 600 }, () => row(1_700_000_000_000)), row(1_700_000_000_000, 'other')])
  assert.deepEqual(cursors.of('greet'), { priority: 5, since: '2023-11-14T22:13:19.999Z' })
  for (const none of [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, -8.64e15, 8.64e15]) {
    cursors.advance([row(none)])
    assert.equal(cursors.of('greet'), null)
  }
  assert.notEqual(cursors.of('other'), null)
})
