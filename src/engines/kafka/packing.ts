/** Runs of offsets in few characters: as a bitmap where they are dense, as lengths where they are wide. */
import type { Run } from './runs.ts'

const BITMAP_OFFSETS_MAX = 8_192
const BITMAP = 'b'
const LENGTHS = 'l'

/** `runs` in order, at or above `origin`. The shorter of both ways; what is too much for `charsMax` is left out, the last first. */
export function packRuns(origin: number, runs: readonly Run[], charsMax: number): string {
  const lengths = packLengths(origin, runs, charsMax)
  const last = runs.at(-1)
  if (last === undefined || charsMax < 2) return ''
  const isWhole = unpackedEnd(origin, lengths) === last[1]
  const bitmapMax = Math.min(BITMAP_OFFSETS_MAX, Math.floor((charsMax - 1) / 4) * 24)
  if (isWhole && lengths.length <= bitmapChars(last[1] - origin)) return lengths
  const bitmap = packBitmap(origin, runs, bitmapMax)
  const isBetter = isWhole ? last[1] - origin <= bitmapMax : unpackedEnd(origin, bitmap) > unpackedEnd(origin, lengths)
  return isBetter ? bitmap : lengths
}

/** What is not ours, or damaged, has no runs. */
export function unpackRuns(origin: number, text: string): readonly Run[] {
  const bytes = Buffer.from(text.slice(1), 'base64')
  if (text.startsWith(BITMAP)) return unpackBitmap(origin, bytes)
  return text.startsWith(LENGTHS) ? unpackLengths(origin, bytes) : []
}

function unpackedEnd(origin: number, text: string): number {
  return unpackRuns(origin, text).at(-1)?.[1] ?? origin
}

function bitmapChars(offsets: number): number {
  return offsets > BITMAP_OFFSETS_MAX ? Number.POSITIVE_INFINITY : 1 + Math.ceil(offsets / 24) * 4
}

function packBitmap(origin: number, runs: readonly Run[], offsetsMax: number): string {
  const bytes = Buffer.alloc(offsetsMax / 8)
  let used = 0
  for (const [from, to] of runs) {
    const end = Math.min(to - origin, offsetsMax)
    for (let bit = from - origin; bit < end; bit += 1) {
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (1 << (bit & 7))
      used = (bit >> 3) + 1
    }
  }
  return BITMAP + bytes.toString('base64', 0, used)
}

function unpackBitmap(origin: number, bytes: Buffer): readonly Run[] {
  const runs: Run[] = []
  let begin: number | null = null
  for (let bit = 0; bit <= bytes.length * 8; bit += 1) {
    const isSet = ((bytes[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0
    if (isSet) begin ??= bit
    else if (begin !== null) {
      runs.push([origin + begin, origin + bit])
      begin = null
    }
  }
  return runs
}

/** The gap before each run and its length, in groups of seven bits. */
function packLengths(origin: number, runs: readonly Run[], charsMax: number): string {
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

function unpackLengths(origin: number, bytes: Buffer): readonly Run[] {
  const numbers: number[] = []
  // By factors, not by shifts: those are for 32 bits, and a gap may be wider.
  let [value, factor] = [0, 1]
  for (const byte of bytes) {
    value += (byte & 0x7f) * factor
    factor *= 0x80
    if ((byte & 0x80) !== 0) continue
    numbers.push(value)
    ;[value, factor] = [0, 1]
  }
  const runs: Run[] = []
  let at = origin
  for (let index = 0; index + 1 < numbers.length; index += 2) {
    const from = at + (numbers[index] ?? 0)
    at = from + (numbers[index + 1] ?? 0)
    runs.push([from, at])
  }
  return runs
}

function varint(value: number): readonly number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return bytes
}
