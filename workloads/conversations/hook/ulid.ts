/**
 * What the built hook has instead of the package `ulid`, which loads node:crypto: that takes 5 ms. The same ids, from the same
 * random bytes of the system.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { randomBytes } from '../store/secret.ts'

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const RANDOM_DIGITS = 16
const TIME_DIGITS = 10

/** Ids that increase strictly within this process. */
export function monotonicFactory(): (nowMs: number) => string {
  let [lastMs, random] = [-1, 0n]
  return (nowMs) => {
    random = nowMs > lastMs ? BigInt(`0x${randomHex()}`) : random + 1n
    lastMs = Math.max(lastMs, nowMs)
    return digits(BigInt(lastMs), TIME_DIGITS) + digits(random, RANDOM_DIGITS)
  }
}

function digits(value: bigint, count: number): string {
  let text = ''
  for (let rest = value; text.length < count; rest >>= 5n) text = DIGITS.charAt(Number(rest & 31n)) + text
  return text
}

/** 79 bits, so that counting up never overflows. */
function randomHex(): string {
  const bytes = Buffer.from(systemRandom(10))
  bytes[0] = (bytes[0] ?? 0) & 0x7f
  return bytes.toString('hex')
}

function systemRandom(count: number): Uint8Array {
  const bytes = new Uint8Array(count)
  try {
    const descriptor = openSync('/dev/urandom', 'r')
    try {
      if (readSync(descriptor, bytes) === count) return bytes
    } finally {
      closeSync(descriptor)
    }
  } catch {}
  return randomBytes(count)
}
