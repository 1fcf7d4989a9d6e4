import {
  type Header,
  type HeaderNames,
  type LogRecord,
  type PartitionName,
  type RecordHeaders,
  textOf,
} from './record.ts'

/** Where reading is in some bytes. */
export interface Cursor {
  readonly bytes: Buffer
  at: number
}

/** A number as the log writes it: seven bits a byte, the lowest first, the sign in the lowest bit. */
export function readVarint(cursor: Cursor): number {
  const first = byteAt(cursor.bytes, cursor.at)
  if (first < 0x80) {
    cursor.at += 1
    return (first >>> 1) ^ -(first & 1)
  }
  const second = byteAt(cursor.bytes, cursor.at + 1)
  if (second >= 0x80) return readWideVarint(cursor)
  cursor.at += 2
  const value = (first & 0x7f) | (second << 7)
  return (value >>> 1) ^ -(value & 1)
}

/** By factors, because shifts are for 32 bits and times are wider. */
function readWideVarint(cursor: Cursor): number {
  const { bytes } = cursor
  let byte: number
  let value = 0
  let factor = 1
  do {
    byte = byteAt(bytes, cursor.at)
    cursor.at += 1
    value += (byte & 0x7f) * factor
    factor *= 0x80
  } while (byte >= 0x80)
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2
}

function byteAt(bytes: Buffer, at: number): number {
  const byte = bytes[at]
  if (byte === undefined) throw new RangeError('a record of the log ends in the middle')
  return byte
}

/** Where records stand that came together. */
export interface RecordPlace extends PartitionName {
  /** What the coordinates of each begin with. */
  readonly prefix: string
}

/**
 * A record where it lies, among those it came with. What it is made of is read when it is asked for: most records are
 * asked for their value alone, and an object for each part is more than the collector of garbage keeps up with.
 */
export class LoggedRecord implements LogRecord, RecordHeaders {
  readonly topic: string
  readonly partition: number
  readonly at: number
  readonly timestampMs: number
  readonly #prefix: string
  #bytes: Buffer
  #keyAt: number
  readonly #keyLength: number
  #valueAt: number
  readonly #valueLength: number
  #end: number
  #foundOf: HeaderNames | null = null
  #found = 0

  /** `cursor`: at the length of the key; left there. `end`: where the record ends. */
  constructor(place: RecordPlace, at: number, timestampMs: number, cursor: Cursor, end: number) {
    this.topic = place.topic
    this.partition = place.partition
    this.#prefix = place.prefix
    this.at = at
    this.timestampMs = timestampMs
    this.#bytes = cursor.bytes
    const from = cursor.at
    this.#keyLength = readVarint(cursor)
    this.#keyAt = cursor.at
    cursor.at += Math.max(0, this.#keyLength)
    this.#valueLength = readVarint(cursor)
    this.#valueAt = cursor.at
    this.#end = end
    cursor.at = from
  }

  get offset(): bigint {
    return BigInt(this.at)
  }

  get coordinates(): string {
    return this.#prefix + this.at
  }

  get bytes(): number {
    return this.#end - this.#keyAt
  }

  get key(): Buffer | null {
    return this.#keyLength < 0 ? null : this.#bytes.subarray(this.#keyAt, this.#keyAt + this.#keyLength)
  }

  /** The bytes of the key, one by one, so that keys that are no text stay apart. */
  get keyBytes(): string | null {
    return this.#keyLength < 0 ? null : this.#bytes.toString('latin1', this.#keyAt, this.#keyAt + this.#keyLength)
  }

  get value(): Buffer | null {
    return this.#valueLength < 0 ? null : this.#bytes.subarray(this.#valueAt, this.#valueAt + this.#valueLength)
  }

  valueText(): string | null {
    if (this.#valueLength < 0) return 'null'
    return textOf(this.#bytes, this.#valueAt, this.#valueAt + this.#valueLength)
  }

  get headers(): RecordHeaders {
    return this
  }

  /** Moves it into memory of its own: one that waits for long would otherwise keep all that it came with. */
  detach(): void {
    if (this.#bytes.length === this.bytes) return
    const own = Buffer.allocUnsafeSlow(this.bytes)
    this.#bytes.copy(own, 0, this.#keyAt, this.#end)
    this.#bytes = own
    this.#valueAt -= this.#keyAt
    this.#end -= this.#keyAt
    this.#keyAt = 0
  }

  get(name: string): Buffer | undefined {
    let found: Buffer | undefined
    for (const [written, value] of this) if (written === name) found = value ?? undefined
    return found
  }

  found(names: HeaderNames): number {
    if (this.#foundOf === names) return this.#found
    const bytes = this.#bytes
    const cursor = this.#headersCursor()
    let found = 0
    for (let left = readVarint(cursor); left > 0; left -= 1) {
      const nameLength = Math.max(0, readVarint(cursor))
      const place = names.placeOf(bytes, cursor.at, nameLength)
      if (place >= 0) found |= 1 << place
      cursor.at += nameLength
      const length = readVarint(cursor)
      cursor.at += Math.max(0, length)
    }
    this.#foundOf = names
    this.#found = found
    return found
  }

  textAt(names: HeaderNames, place: number): string | null {
    const bytes = this.#bytes
    const cursor = this.#headersCursor()
    let from = 0
    let to = -1
    for (let left = readVarint(cursor); left > 0; left -= 1) {
      const nameLength = Math.max(0, readVarint(cursor))
      const isMeant = names.isAt(place, bytes, cursor.at, nameLength)
      cursor.at += nameLength
      const length = readVarint(cursor)
      if (isMeant) {
        from = cursor.at
        to = from + length
      }
      cursor.at += Math.max(0, length)
    }
    return to < from ? null : textOf(bytes, from, to)
  }

  *[Symbol.iterator](): Iterator<Header> {
    const bytes = this.#bytes
    const cursor = this.#headersCursor()
    for (let left = readVarint(cursor); left > 0; left -= 1) {
      const nameLength = Math.max(0, readVarint(cursor))
      const name = bytes.toString('utf8', cursor.at, cursor.at + nameLength)
      cursor.at += nameLength
      const length = readVarint(cursor)
      yield [name, length < 0 ? null : bytes.subarray(cursor.at, cursor.at + length)]
      cursor.at += Math.max(0, length)
    }
  }

  /** What is null has a length of -1. A name may not be, and is taken for empty. */
  #headersCursor(): Cursor {
    return { bytes: this.#bytes, at: this.#valueAt + Math.max(0, this.#valueLength) }
  }
}
