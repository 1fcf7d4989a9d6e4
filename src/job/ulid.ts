/** ULIDs: ten digits of time and sixteen random ones, in Crockford's base 32. */
import { closeSync, openSync, readSync } from 'node:fs'

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_DIGITS = 10
/** The sixteen random digits are two numbers of this many, because a number holds no more than 53 bits. */
const HALF_DIGITS = 8
const HALF_END = 2 ** 40
const HALF_BYTES = 5

/** The first ten digits of the ULIDs of a millisecond. */
export function encodeTime(ms: number): string {
  return digitsOf(ms, TIME_DIGITS)
}

/** The first id after all ULIDs: other programs' ids, such as UUIDs, stand on both sides of it. */
export const ULIDS_END = '8'

export function isUlid(id: string): boolean {
  return /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)
}

function digitsOf(value: number, count: number): string {
  let [text, rest] = ['', value]
  for (let place = 0; place < count; place += 1) {
    const digit = rest % 32
    text = DIGITS.charAt(digit) + text
    rest = (rest - digit) / 32
  }
  return text
}

/** Ids that increase strictly within this process: the random part counts up while the time does not. */
export function monotonicFactory(): (nowMs: number) => string {
  let [lastMs, prefix, upper, lower] = [-1, '', 0, 0]
  return (nowMs) => {
    lower += 1
    if (nowMs > lastMs || lower === HALF_END) {
      upper = nowMs > lastMs ? randomHalf() : upper + 1
      lower = nowMs > lastMs ? randomHalf() : 0
      lastMs = Math.max(lastMs, nowMs)
      prefix = encodeTime(lastMs) + digitsOf(upper, HALF_DIGITS)
    }
    return prefix + digitsOf(lower, HALF_DIGITS)
  }
}

/** Random bytes of the system for the next ids, and how many of them are used. */
const pool = Buffer.alloc(640)
let used = pool.length

function randomHalf(): number {
  if (used === pool.length) {
    fillRandomly(pool)
    used = 0
  }
  used += HALF_BYTES
  return pool.readUIntBE(used - HALF_BYTES, HALF_BYTES)
}

/** From the system itself where it has this file: node:crypto takes as long to load as a third of Node's own start. */
function fillRandomly(bytes: Buffer): void {
  try {
    const descriptor = openSync('/dev/urandom', 'r')
    try {
      if (readSync(descriptor, bytes) === bytes.length) return
    } finally {
      closeSync(descriptor)
    }
  } catch {
    // Windows has none, and a sandbox may forbid it.
  }
  process.getBuiltinModule('node:crypto').randomFillSync(bytes)
}
