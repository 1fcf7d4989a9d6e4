import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OptionError } from '../../src/errors.ts'
import { fromUrgency } from './urgency.ts'

// A38 X001
test('urgencies, higher first, become priorities, 1 first', () => {
  const converted = [0, 1, 3, 5, 10, 15].map(fromUrgency)
  assert.deepEqual(converted, [10, 9, 8, 7, 4, 1])
})

// A38 X001
test('a higher urgency never becomes a later priority, and each is within 1 to 10', () => {
  for (let urgency = 1; urgency <= 15; urgency += 1) {
    assert.ok(fromUrgency(urgency) <= fromUrgency(urgency - 1))
    assert.ok(fromUrgency(urgency) >= 1 && fromUrgency(urgency) <= 10)
  }
})

test('an urgency outside 0 to 15 is refused', () => {
  for (const urgency of [-1, 16, 2.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => fromUrgency(urgency), OptionError, `${urgency}`)
  }
})
