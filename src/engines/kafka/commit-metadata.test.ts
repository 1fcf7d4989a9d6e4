import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeProgress, encodeProgress, METADATA_BYTES_MAX, type RetryState } from './commit-metadata.ts'

const ONCE: RetryState = { starts: 1, dueMs: 0, firstFailureMs: null }
const TWICE: RetryState = { starts: 2, dueMs: 0, firstFailureMs: 1_000 }

test('who starts nothing more says below which offset there may be starts that it does not know of', () => {
  const progress = { finished: [], retryStates: [[12, ONCE] as const], topicId: 'id' }
  for (const [told, read] of [
    [null, null],
    [0, 10],
    [10, 10],
    [700, 700],
  ] as const) {
    const metadata = encodeProgress(10, { ...progress, doubtfulBelow: told })
    const { doubtfulBelow, topicId, retryStates } = decodeProgress(10, metadata)
    assert.deepEqual([doubtfulBelow, topicId, [...retryStates]], [read, 'id', [[12, ONCE]]])
  }
  assert.equal(decodeProgress(10, 'm2|||@id').doubtfulBelow, null)
  assert.equal(decodeProgress(10, 'm2|||=,@id').doubtfulBelow, null)
})

test('who has no room for all starts does not say that they are told', () => {
  const everySecond = (count: number, state: RetryState) =>
    Array.from({ length: count }, (_, index): readonly [number, RetryState] => [index * 2 + 1, state])
  for (const [state, few, many] of [
    [ONCE, 1_000, 100_000],
    [TWICE, 50, 1_000],
  ] as const) {
    const doubtIn = (count: number): number | null | undefined => {
      const retryStates = everySecond(count, state)
      const metadata = encodeProgress(0, { finished: [], retryStates, topicId: 'id', doubtfulBelow: 0 })
      assert.ok(metadata.length <= METADATA_BYTES_MAX, `${metadata.length} bytes`)
      return decodeProgress(0, metadata).doubtfulBelow
    }
    assert.deepEqual([doubtIn(few), doubtIn(many)], [0, null])
  }
})
