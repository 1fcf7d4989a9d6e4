import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOTHING, toggle } from '../../parts/selection.ts'
import { selectionOf, selectionText, touchedText } from './selection-words.ts'

test('ticked rows are asked for by id, whatever the filter is', () => {
  const selection = selectionOf(toggle(toggle(NOTHING, 'a'), 'b'), { type: 'mail' })
  assert.deepEqual(selection, { ids: ['a', 'b'] })
  assert.equal(selectionText(selection), '2 dead letters')
})

test('everything is asked for by the filter, so that rows nobody has seen are meant too', () => {
  const all = { ids: new Set(['a']), all: true }
  assert.deepEqual(selectionOf(all, { type: 'mail', fingerprint: 'f1' }), { type: 'mail', fingerprint: 'f1' })
  assert.deepEqual(selectionOf(all, {}), {})
  assert.equal(selectionText({ type: 'mail' }), 'all dead letters of type mail')
  assert.equal(selectionText({}), 'all dead letters')
})

test('everything is what the page shows: later deaths are left out', () => {
  const all = { ids: new Set<string>(), all: true }
  assert.deepEqual(selectionOf(all, { type: 'mail', beforeMs: 7 }), { type: 'mail', beforeMs: 7 })
})

test('an act is named by the number that it will touch, or by a lower bound that says so', () => {
  assert.equal(touchedText({}, null), 'all dead letters')
  assert.equal(touchedText({}, { done: 11_281, interrupted: false }), '11,281 dead letters')
  assert.equal(touchedText({}, { done: 11_281, interrupted: true }), 'at least 11,281 dead letters')
  assert.equal(touchedText({ ids: ['a', 'b'] }, { done: 1, interrupted: false }), '1 dead letter')
})
