import assert from 'node:assert/strict'
import { test } from 'node:test'
import { editOf, editsByEvent } from './payload-edit.ts'

test('an edit is found in the payloads before and after', () => {
  const before = { payload: { currency: 'EURO', pin: '[redacted]', items: [{ n: 1 }, { n: 2 }] } }
  const after = { payload: { currency: 'EUR', pin: '[redacted]', items: [{ n: 1 }, { n: 3 }], note: 'x' } }
  assert.deepEqual(editOf({ before, after }), {
    parts: [
      { path: 'currency', before: 'EURO', after: 'EUR', long: [] },
      { path: 'items.1.n', before: 2, after: 3, long: [] },
      { path: 'note', before: undefined, after: 'x', long: [] },
    ],
    unnamed: 0,
  })
})

test('an edit is found in what the audit notes of it, with values only where it has them', () => {
  const changed = [
    { path: '/items/0/a~1b', before: 1, after: 2 },
    { path: '/pin' },
    { path: '' },
    { path: '/note', before: 'a', long: ['after'] },
    'nonsense',
  ]
  assert.deepEqual(
    editOf({ before: {}, after: { edit: { before: 'scrypt$', after: 'scrypt$', changed, unnamed: 4 } } }),
    {
      parts: [
        { path: 'items.0.a/b', before: 1, after: 2, long: [] },
        { path: 'pin', before: undefined, after: undefined, long: [] },
        { path: '', before: undefined, after: undefined, long: [] },
        { path: 'note', before: 'a', after: undefined, long: ['after'] },
      ],
      unnamed: 4,
    },
  )
})

test('an act that left the payload alone has no edit', () => {
  assert.equal(editOf({ before: { state: 'dead_letter' }, after: { state: 'queued' } }), null)
  assert.equal(editOf({ before: { payload: { n: 1 } }, after: null }), null)
})

test('an edit belongs to the replay of its time, and to none that is long past', () => {
  const event = (name: string, atMs: number) => ({ jobId: 'a', name, atMs, attempt: 1, worker: null, detail: null })
  const [first, second] = [event('replayed', 1_000), event('replayed', 60_000)]
  const act = { who: 'ann', reason: '', action: 'replay', jobId: 'a', type: 'mail', subject: null, before: {} }
  const edited = { edit: { changed: [{ path: '/to', before: 1, after: 2 }], unnamed: 0 } }
  const entries = [
    { ...act, seq: 3, atMs: 60_001, after: edited },
    { ...act, seq: 2, atMs: 1_000, after: {} },
    { ...act, seq: 1, atMs: 500_000, after: edited },
  ]
  const found = editsByEvent([event('enqueued', 0), first, second], entries)
  assert.deepEqual([found.get(first)?.seq, found.get(second)?.seq], [undefined, 3])
})
