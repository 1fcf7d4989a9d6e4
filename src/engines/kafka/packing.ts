/** Runs of offsets in few characters: as a bitmap where they are dense, as lengths where they are wide. */
import type { Run } from './runs.ts'

const BITMAP_OFFSETS_MAX = 8_192
const BITMAP = 'b'
const LENGTHS = 'l'

/** `runs` in order, at or above `origin`. The shorter of both ways; what is too much for `charsMax` is left out, the last first. */
export function packRuns(origin: bigint, runs: readonly Run[], charsMax: number): string {
  const lengths = packLengths(origin, runs, charsMax)
  const last = runs.at(-1)
  if (last === undefined || charsMax < 2) return ''
  const isWhole = unpackedEnd(origin, lengths) === last[1]
  const bitmapMax = Math.min(BITMAP_OFFSETS_MAX, Math.floor((charsMax - 1) / 4) * 24)
  if (isWhole && lengths.length <= bitmapChars(Number(last[1] - origin))) return lengths
  const bitmap = packBitmap(origin, runs, bitmapMax)
  const isBetter = isWhole
    ? last[1] - origin <= BigInt(bitmapMax)
    : unpackedEnd(origin, bitmap) > unpackedEnd(origin, lengths)
  return isBetter ? bitmap : lengths
}

/** What is not ours, or damaged, has no runs. */
export function unpackRuns(origin: bigint, text: string): readonly Run[] {
  const bytes = Buffer.from(text.slice(1), 'base64')
  if (text.startsWith(BITMAP)) return unpackBitmap(origin, bytes)
  return text.startsWith(LENGTHS) ? unpackLengths(origin, bytes) : []
}

function unpackedEnd(origin: bigint, text: string): bigint {
  return unpackRuns(origin, text).at(-1)?.[1] ?? origin
}

function bitmapChars(offsets: number): number {
  return offsets > BITMAP_OFFSETS_MAX ? Number.POSITIVE_INFINITY : 1 + Math.ceil(offsets / 24) * 4
}

function packBitmap(origin: bigint, runs: readonly Run[], offsetsMax: number): string {
  const bytes = Buffer.alloc(offsetsMax / 8)
  let used = 0
  for (const [from, to] of runs) {
    const end = Math.min(Number(to - origin), offsetsMax)
    for (let bit = Number(from - origin); bit < end; bit += 1) {
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (1 << (bit & 7))
      used = (bit >> 3) + 1
    }
  }
  return BITMAP + bytes.toString('base64', 0, used)
}

function unpackBitmap(origin: bigint, bytes: Buffer): readonly Run[] {
  const runs: Run[] = []
  let begin: number | null = null
  for (let bit = 0; bit <= bytes.length * 8; bit += 1) {
    const isSet = ((bytes[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0
    if (isSet) begin ??= bit
    else if (begin !== null) {
      runs.push([origin + BigInt(begin), origin + BigInt(bit)])
      begin = null
    }
  }
  return runs
}

/** The gap before each run and its length, in groups of seven bits. */
function packLengths(origin: bigint, runs: readonly Run[], charsMax: number): string {
  const bytesMax = Math.floor((charsMax - 1) / 4) * 3
  const bytes: number[] = []
  let at = origin
  for (const [from, to] of runs) {
    const next = [...varint(from - at), ...varint(to - from)]
    if (bytes.length + next.length > bytesMax) break
    bytes.push(...next)
    at = to
  }
  return LENGTHS + Buffer.from(bytes).toString('base64')
}

function unpackLengths(origin: bigint, bytes: Buffer): readonly Run[] {
  const numbers: bigint[] = []
  let [value, shift] = [0n, 0n]
  for (const byte of bytes) {
    value |= BigInt(byte & 0x7f) << shift
    shift += 7n
    if ((byte & 0x80) !== 0) continue
    numbers.push(value)
    ;[value, shift] = [0n, 0n]
  }
  const runs: Run[] = []
  let at = origin
  for (let index = 0; index + 1 < numbers.length; index += 2) {
    const from = at + (numbers[index] ?? 0n)
    at = from + (numbers[index + 1] ?? 0n)
    runs.push([from, at])
  }
  return runs
}

function varint(value: bigint): readonly number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return bytes
}
