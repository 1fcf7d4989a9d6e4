import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOTHING, toggle } from '../../parts/selection.ts'
import { selectionOf, selectionText } from './selection-words.ts'

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
