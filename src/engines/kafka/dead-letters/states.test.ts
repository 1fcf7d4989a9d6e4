import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimRecord, decodeState, encodeState, releaseRecord, resolvedRecord, StateBook } from './states.ts'

const by = { who: 'ann', reason: 'old' }

// X148
test('the first claim in the log has the letter; when it is released the next one has it', () => {
  const claim = (name: string) => claimRecord({ letter: 'l', claim: name, atMs: 1, by })
  const book = new StateBook([claim('one'), claim('two'), claim('one')])
  assert.equal(book.of('l').claim, 'one')
  book.apply(releaseRecord('l', 'one'))
  assert.equal(book.of('l').claim, 'two')
  book.apply(releaseRecord('l', 'two'))
  assert.equal(book.of('l').state, 'pending')
})

test('states are read back as written, and foreign records are skipped', () => {
  const at = { topic: 'a.dlq', partition: 0, offset: '9007199254740993' }
  const records = [
    claimRecord({ letter: 'a/0/1/a group', claim: 'c1', atMs: 5, by }),
    releaseRecord('a/0/1/a group', 'c1'),
    resolvedRecord({ letter: 'a/0/1/a group', state: 'replayed', at, atMs: 6, by }),
  ]
  for (const record of records) {
    const { key, value } = encodeState(record)
    assert.deepEqual(decodeState(key, value), record)
  }
  const foreign = [
    '',
    'x',
    '{}',
    '[]',
    'null',
    '{"kind":"resolved","letter":"a","atMs":1,"by":{"who":"a","reason":"b"}}',
  ]
  for (const value of foreign) assert.equal(decodeState(Buffer.from('state a'), Buffer.from(value)), null, value)
  assert.equal(decodeState(Buffer.from('other'), null), null)
  assert.equal(decodeState(null, null), null)
})
