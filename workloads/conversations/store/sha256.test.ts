import assert from 'node:assert/strict'
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { hmacSha256, sha256 } from './sha256.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

// X128
test('SHA-256 and its HMAC agree with node:crypto for every length around the block size, and for long input', () => {
  const lengths = [...Array.from({ length: 200 }, (_, length) => length), 1_000, 65_537]
  for (const length of lengths) {
    const [message, key] = [randomBytes(length), randomBytes(length % 150)]
    const shown = `message ${hex(message)}, key ${hex(key)}`
    assert.equal(hex(sha256(message)), createHash('sha256').update(message).digest('hex'), shown)
    assert.equal(hex(hmacSha256(key, message)), createHmac('sha256', key).update(message).digest('hex'), shown)
  }
})
