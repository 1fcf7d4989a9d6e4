import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fingerprint, normalise } from './fingerprint.ts'

const error = (message: string, name = 'Error', code: string | null = null) => ({ name, code, message, stack: null })

test('what varies from letter to letter is left out', () => {
  const pairs = [
    ['no invoice 42', 'no invoice 1007'],
    ["no mailbox 'ann' at 10:31:07.5", "no mailbox 'bob jones' at 9:02:55.1"],
    ['job 01ARZ3NDEKTSV4RRFFQ69G5FAV is gone', 'job 01BX5ZZKBKACTAV9WEVGEMMVRZ is gone'],
    ['user 6f9619ff-8b86-4d01-b42d-00cf4fc964ff is banned', 'user 00000000-8b86-4d01-b42d-00cf4fc964fe is banned'],
    ['GET https://example.com/a?b=1 failed', 'GET http://example.org/c failed'],
    ['object deadbeef00112233 is locked', 'object 99887766aabbccdd is locked'],
  ] as const
  for (const [one, other] of pairs) {
    assert.equal(normalise(one), normalise(other))
    assert.equal(fingerprint('t', error(one)), fingerprint('t', error(other)))
  }
})

test('what tells causes apart stays in', () => {
  const all = [
    fingerprint('t', error('connection refused')),
    fingerprint('t', error('connection reset')),
    fingerprint('u', error('connection refused')),
    fingerprint('t', error('connection refused', 'TypeError')),
    fingerprint('t', error('connection refused', 'Error', 'ECONNREFUSED')),
  ]
  assert.equal(new Set(all).size, all.length)
  for (const one of all) assert.match(one, /^[0-9a-f]{12}$/)
})

test('the stack says nothing: it moves with every deployment', () => {
  const [one, other] = [error('x'), { ...error('x'), stack: 'at y:1' }]
  assert.equal(fingerprint('t', one), fingerprint('t', other))
})
