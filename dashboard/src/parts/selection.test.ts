import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNothing, isSelected, NOTHING, pageState, selectRange, toggle, togglePage } from './selection.ts'

test('one row is ticked and unticked', () => {
  const one = toggle(NOTHING, 'a')
  assert.ok(isSelected(one, 'a') && !isSelected(one, 'b'))
  assert.ok(isNothing(toggle(one, 'a')))
  assert.ok(isNothing(NOTHING), 'the start is left as it was')
})

test('the box of a page ticks the rest of it first, and unticks it when it is whole', () => {
  const some = toggle(NOTHING, 'a')
  assert.equal(pageState(some, ['a', 'b']), 'some')
  const whole = togglePage(some, ['a', 'b'])
  assert.equal(pageState(whole, ['a', 'b']), 'all')
  assert.ok(isNothing(togglePage(whole, ['a', 'b'])))
})

test('a range is ticked in either direction, beside what was ticked before', () => {
  const page = ['a', 'b', 'c', 'd']
  const start = toggle(NOTHING, 'z')
  assert.deepEqual([...selectRange(start, page, 'b', 'd').ids], ['z', 'b', 'c', 'd'])
  assert.deepEqual([...selectRange(start, page, 'c', 'a').ids], ['z', 'a', 'b', 'c'])
  assert.deepEqual([...selectRange(start, page, 'gone', 'a').ids], ['z', 'a'], 'the first row is on another page')
})

test('rows of another page stay ticked', () => {
  const two = togglePage(toggle(NOTHING, 'z'), ['a', 'b'])
  assert.deepEqual([...togglePage(two, ['a', 'b']).ids], ['z'])
})

test('an empty page is not ticked, and everything covers rows that nobody has seen', () => {
  assert.equal(pageState(NOTHING, []), 'none')
  const all = { ids: new Set<string>(), all: true }
  assert.ok(isSelected(all, 'never seen'))
  assert.equal(isNothing(all), false)
  assert.equal(toggle(all, 'a').all, false, 'touching a row goes back to rows')
})
