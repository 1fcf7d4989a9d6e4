import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { contentKey } from './keys.ts'

const id = '01J8ZQK3V5X7M9N2P4R6T8W0YB'
const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

// B198 X094
test('a content key is its prefix and the first 16 hex digits of the SHA-256', () => {
  assert.equal(contentKey('sanitize', id), `sanitize-${digest(id)}`)
})

// B197
test('a nonce gives another key for the same content', () => {
  assert.equal(contentKey('sanitize', id, 'again'), `sanitize-${digest(`${id}:again`)}`)
  assert.notEqual(contentKey('sanitize', id, 'again'), contentKey('sanitize', id))
})

// B199
test('a prefix that makes a bad key is refused', () => {
  assert.throws(() => contentKey('a\nb', id), { code: 'ERR_OPTION_INVALID' })
  assert.throws(() => contentKey('x'.repeat(600), id), { code: 'ERR_OPTION_INVALID' })
})
