import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONTENT_BYTES_MAX, cidOf } from './cid.ts'

// B75
test('the content id is that of a single raw block', () => {
  const known = {
    '': 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku',
    'hello world': 'bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e',
  }
  for (const [content, cid] of Object.entries(known)) assert.equal(cidOf(new TextEncoder().encode(content)), cid)
})

test('more than one chunk is refused, because its content id would be another', () => {
  assert.match(cidOf(new Uint8Array(CONTENT_BYTES_MAX)), /^bafkrei[a-z2-7]{52}$/)
  assert.throws(() => cidOf(new Uint8Array(CONTENT_BYTES_MAX + 1)), {
    code: 'ERR_NON_RETRYABLE',
    message: /1048577 bytes/,
  })
})
