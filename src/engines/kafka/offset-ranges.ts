/** Offsets from `from` up to `to`, without `to` itself. */
export type OffsetRange = readonly [from: number, to: number]

/**
 * A set of offsets that is kept as runs: what was finished above a record that waits is nearly in one piece, however
 * far it reaches, and takes no more room for that.
 */
export class OffsetRanges implements Iterable<OffsetRange> {
  /** By where it begins, where it ends; and the other way round. */
  readonly #ends = new Map<number, number>()
  readonly #begins = new Map<number, number>()

  /** How many runs there are. */
  get size(): number {
    return this.#ends.size
  }

  /** Of offsets that are not in it yet. */
  add(from: number, to: number): void {
    if (from >= to) return
    const begin = this.#begins.get(from) ?? from
    const end = this.#ends.get(to) ?? to
    this.#begins.delete(from)
    this.#ends.delete(to)
    this.#ends.set(begin, end)
    this.#begins.set(end, begin)
  }

  /** Removes the run that begins there, and answers where it ended. */
  takeFrom(begin: number): number | null {
    const end = this.#ends.get(begin)
    if (end === undefined) return null
    this.#ends.delete(begin)
    this.#begins.delete(end)
    return end
  }

  /** In no particular order. */
  [Symbol.iterator](): Iterator<OffsetRange> {
    return this.#ends.entries()
  }
}

/** How many offsets are in runs that do not overlap; below a limit, if one is given. */
export function countOf(ranges: Iterable<OffsetRange>, below: number = Number.POSITIVE_INFINITY): number {
  let count = 0
  for (const [from, to] of ranges) count += Math.max(0, Math.min(to, below) - from)
  return count
}

/** In order, and joined where they touch. */
export function inOrder(ranges: Iterable<OffsetRange>): readonly OffsetRange[] {
  const joined: [number, number][] = []
  for (const [from, to] of [...ranges].sort(([one], [other]) => one - other)) {
    const last = joined.at(-1)
    if (last !== undefined && last[1] >= from) last[1] = Math.max(to, last[1])
    else joined.push([from, to])
  }
  return joined
}

/** OffsetRanges of offsets in few characters: as a bitmap where they are dense, as lengths where they are wide. */

const BITMAP_OFFSETS_MAX = 8_192
const BITMAP = 'b'
const LENGTHS = 'l'

/** `runs` in order, at or above `origin`. The shorter of both ways; what is too much for `charsMax` is left out, the last first. */
export function packRanges(origin: number, ranges: readonly OffsetRange[], charsMax: number): string {
  const lengths = packLengths(origin, ranges, charsMax)
  const last = ranges.at(-1)
  if (last === undefined || charsMax < 2) return ''
  const isWhole = unpackedEnd(origin, lengths) === last[1]
  const bitmapMax = Math.min(BITMAP_OFFSETS_MAX, Math.floor((charsMax - 1) / 4) * 24)
  if (isWhole && lengths.length <= bitmapChars(last[1] - origin)) return lengths
  const bitmap = packBitmap(origin, ranges, bitmapMax)
  const isBetter = isWhole ? last[1] - origin <= bitmapMax : unpackedEnd(origin, bitmap) > unpackedEnd(origin, lengths)
  return isBetter ? bitmap : lengths
}

/** What is not ours, or damaged, has no runs. */
export function unpackRanges(origin: number, text: string): readonly OffsetRange[] {
  const bytes = Buffer.from(text.slice(1), 'base64')
  if (text.startsWith(BITMAP)) return unpackBitmap(origin, bytes)
  return text.startsWith(LENGTHS) ? unpackLengths(origin, bytes) : []
}

function unpackedEnd(origin: number, text: string): number {
  return unpackRanges(origin, text).at(-1)?.[1] ?? origin
}

function bitmapChars(offsets: number): number {
  return offsets > BITMAP_OFFSETS_MAX ? Number.POSITIVE_INFINITY : 1 + Math.ceil(offsets / 24) * 4
}

function packBitmap(origin: number, ranges: readonly OffsetRange[], offsetsMax: number): string {
  const bytes = Buffer.alloc(offsetsMax / 8)
  let used = 0
  for (const [from, to] of ranges) {
    const end = Math.min(to - origin, offsetsMax)
    for (let bit = from - origin; bit < end; bit += 1) {
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (1 << (bit & 7))
      used = (bit >> 3) + 1
    }
  }
  return BITMAP + bytes.toString('base64', 0, used)
}

function unpackBitmap(origin: number, bytes: Buffer): readonly OffsetRange[] {
  const ranges: OffsetRange[] = []
  let begin: number | null = null
  for (let bit = 0; bit <= bytes.length * 8; bit += 1) {
    const isSet = ((bytes[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0
    if (isSet) begin ??= bit
    else if (begin !== null) {
      ranges.push([origin + begin, origin + bit])
      begin = null
    }
  }
  return ranges
}

/** The gap before each run and its length, in groups of seven bits. */
function packLengths(origin: number, ranges: readonly OffsetRange[], charsMax: number): string {
  const bytesMax = Math.floor((charsMax - 1) / 4) * 3
  const bytes: number[] = []
  let at = origin
  for (const [from, to] of ranges) {
    const next = [...varint(from - at), ...varint(to - from)]
    if (bytes.length + next.length > bytesMax) break
    bytes.push(...next)
    at = to
  }
  return LENGTHS + Buffer.from(bytes).toString('base64')
}

function unpackLengths(origin: number, bytes: Buffer): readonly OffsetRange[] {
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
  const ranges: OffsetRange[] = []
  let at = origin
  for (let index = 0; index + 1 < numbers.length; index += 2) {
    const from = at + (numbers[index] ?? 0)
    at = from + (numbers[index + 1] ?? 0)
    ranges.push([from, at])
  }
  return ranges
}

function varint(value: number): readonly number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return bytes
}
