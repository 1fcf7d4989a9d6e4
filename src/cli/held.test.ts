import assert from 'node:assert/strict'
import { test } from 'node:test'
import { heldText, lagOf } from './held.ts'

test('partitions are shown as runs by type, and their lags are added up', () => {
  const parts = (...partitions: readonly number[]) => partitions.map((partition) => ({ partition, lag: 10 }))
  const types = [
    { type: 'bill', holds: parts(5, 0, 1, 2) },
    { type: 'mail', holds: parts(1) },
    { type: 'spare', holds: [] },
  ]
  assert.equal(heldText(types), 'bill 0-2,5; mail 1; spare -')
  assert.equal(lagOf(types), 50)
  assert.equal(heldText([{ type: 'bill' }]), 'bill -')
})
