/**
 * SHA-256 and its HMAC in plain code. Loading node:crypto takes 5 ms, a seventh of the time that a whole run of the hook may
 * take, and a prompt has a few short snippets to hash. The tests compare it with node:crypto.
 */

const ROUNDS = 64
const BLOCK_BYTES = 64

/** The first 32 bits of the fractional parts of the cube and square roots of the first primes. */
const K = new Uint32Array(ROUNDS)
const START = new Uint32Array(8)
for (let candidate = 2, found = 0; found < ROUNDS; candidate += 1) {
  if (!isPrime(candidate)) continue
  if (found < START.length) START[found] = fraction(Math.sqrt(candidate))
  K[found] = fraction(Math.cbrt(candidate))
  found += 1
}

function isPrime(candidate: number): boolean {
  for (let factor = 2; factor * factor <= candidate; factor += 1) if (candidate % factor === 0) return false
  return true
}

function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32)
}

export function sha256(message: Uint8Array): Uint8Array {
  const state = Uint32Array.from(START)
  const blocks = padded(message)
  const view = new DataView(blocks.buffer)
  const words = new Uint32Array(ROUNDS)
  for (let at = 0; at < blocks.length; at += BLOCK_BYTES) {
    for (let index = 0; index < 16; index += 1) words[index] = view.getUint32(at + index * 4)
    compress(state, words)
  }
  const digest = new Uint8Array(32)
  const out = new DataView(digest.buffer)
  state.forEach((word, index) => {
    out.setUint32(index * 4, word)
  })
  return digest
}

/** The message, one bit, zeros, and the length in bits. */
function padded(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const blocks = new Uint8Array(Math.ceil((message.length + 9) / BLOCK_BYTES) * BLOCK_BYTES)
  blocks.set(message)
  blocks[message.length] = 0x80
  new DataView(blocks.buffer).setBigUint64(blocks.length - 8, BigInt(message.length) * 8n)
  return blocks
}

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by))
/** Indexes here are always within the array. */
const at = (words: Uint32Array, index: number): number => words[index] ?? 0

function compress(state: Uint32Array, words: Uint32Array): void {
  for (let index = 16; index < ROUNDS; index += 1) {
    const [early, late] = [at(words, index - 15), at(words, index - 2)]
    const small = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3)
    const large = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10)
    words[index] = at(words, index - 16) + small + at(words, index - 7) + large
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let index = 0; index < ROUNDS; index += 1) {
    const mixed = (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g))
    const first = (h + mixed + at(K, index) + at(words, index)) | 0
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + second) | 0
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) state[index] = at(state, index) + word
}

export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK_BYTES)
  block.set(key.length > BLOCK_BYTES ? sha256(key) : key)
  const keyed = (mask: number, data: Uint8Array): Uint8Array =>
    sha256(Buffer.concat([block.map((byte) => byte ^ mask), data]))
  return keyed(0x5c, keyed(0x36, message))
}
