import { createHash } from 'node:crypto'
import { NonRetryable } from '../../../src/errors.ts'

/** One chunk: up to here the content id is that of a single raw block, which is computed without an IPFS library. */
export const CONTENT_BYTES_MAX: number = 1_048_576

/** CIDv1, codec raw, multihash sha2-256 of 32 bytes. */
const PREFIX = [0x01, 0x55, 0x12, 0x20]

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** The content id that an IPFS node gives these bytes as one raw block (`raw-leaves`, CIDv1). */
export function cidOf(content: Uint8Array): string {
  if (content.length > CONTENT_BYTES_MAX) {
    throw new NonRetryable(
      `the document has ${content.length} bytes, and at most ${CONTENT_BYTES_MAX} are published; shorten the learning`,
    )
  }
  const digest = createHash('sha256').update(content).digest()
  return `b${base32(Uint8Array.from([...PREFIX, ...digest]))}`
}

/** RFC 4648 in lower case, without padding. */
function base32(bytes: Uint8Array): string {
  let text = ''
  let buffer = 0
  let bits = 0
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += BASE32[(buffer >>> bits) & 31]
    }
    buffer &= (1 << bits) - 1
  }
  return bits > 0 ? text + BASE32[(buffer << (5 - bits)) & 31] : text
}
