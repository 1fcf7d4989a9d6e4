/**
 * SHA-256 and its HMAC in plain code. Loading node:crypto takes 5 ms, a seventh of the time that a whole run of the hook may
 * take, and a prompt has a few short snippets to hash. The tests compare it with node:crypto.
 */

const ROUNDS = 64
const BLOCK_BYTES = 64

/** The first 32 bits of the fractional parts of the cube and square roots of the first primes, as the standard lists them. */
// biome-ignore format: as a table
const K: readonly number[] = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
]
// biome-ignore format: as a table
const START: readonly number[] = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]

export function sha256(message: Uint8Array): Uint8Array {
  const state = [...START]
  const blocks = padded(message)
  const words = new Array<number>(ROUNDS).fill(0)
  for (let at = 0; at < blocks.length; at += BLOCK_BYTES) {
    for (let index = 0; index < 16; index += 1) words[index] = blocks.readInt32BE(at + index * 4)
    compress(state, words)
  }
  const digest = Buffer.allocUnsafe(32)
  for (let index = 0; index < 8; index += 1) digest.writeInt32BE((state[index] ?? 0) | 0, index * 4)
  return digest
}

/** The message, one bit, zeros, and the length in bits. */
function padded(message: Uint8Array): Buffer {
  const blocks = Buffer.alloc(Math.ceil((message.length + 9) / BLOCK_BYTES) * BLOCK_BYTES)
  blocks.set(message)
  blocks[message.length] = 0x80
  blocks.writeUInt32BE(Math.floor(message.length / 2 ** 29), blocks.length - 8)
  blocks.writeUInt32BE((message.length * 8) % 2 ** 32, blocks.length - 4)
  return blocks
}

/** Written out, without functions for its parts: it runs a few times in a process that has just started, so nothing is inlined. */
function compress(state: number[], words: number[]): void {
  for (let index = 16; index < ROUNDS; index += 1) {
    const early = words[index - 15] ?? 0
    const late = words[index - 2] ?? 0
    const small = ((early >>> 7) | (early << 25)) ^ ((early >>> 18) | (early << 14)) ^ (early >>> 3)
    const large = ((late >>> 17) | (late << 15)) ^ ((late >>> 19) | (late << 13)) ^ (late >>> 10)
    words[index] = ((words[index - 16] ?? 0) + small + (words[index - 7] ?? 0) + large) | 0
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let index = 0; index < ROUNDS; index += 1) {
    const turned = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const first = (h + turned + ((e & f) ^ (~e & g)) + (K[index] ?? 0) + (words[index] ?? 0)) | 0
    const spun = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const majority = (a & b) ^ (a & c) ^ (b & c)
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + spun + majority) | 0
  }
  const last = [a, b, c, d, e, f, g, h]
  for (let index = 0; index < 8; index += 1) state[index] = ((state[index] ?? 0) + (last[index] ?? 0)) | 0
}

export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array {
  const block = Buffer.alloc(BLOCK_BYTES)
  block.set(key.length > BLOCK_BYTES ? sha256(key) : key)
  const keyed = (mask: number, data: Uint8Array): Uint8Array => {
    const start = Buffer.alloc(BLOCK_BYTES)
    for (let index = 0; index < BLOCK_BYTES; index += 1) start[index] = (block[index] ?? 0) ^ mask
    return sha256(Buffer.concat([start, data]))
  }
  return keyed(0x5c, keyed(0x36, message))
}
