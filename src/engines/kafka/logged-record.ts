import type { LogRecord, RecordHeaders } from './dead-letters/record.ts'
import type { PartitionName } from './holding.ts'

/** Where reading is in some bytes. */
export interface Cursor {
  readonly bytes: Buffer
  at: number
}

/**
 * A number as the log writes it: seven bits a byte, the lowest first, the sign in the lowest bit. By factors beyond 28
 * bits, because shifts are for 32 and times are wider.
 */
export function readVarint(cursor: Cursor): number {
  const { bytes } = cursor
  let byte = byteAt(bytes, cursor.at)
  cursor.at += 1
  if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1)
  let value = byte & 0x7f
  let factor = 0x80
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

/**
 * A record in memory of its own. What it is made of is read when it is asked for: most records are asked for their value
 * alone, and an object for each part is more than the collector of garbage keeps up with.
 */
export class LoggedRecord implements LogRecord {
  readonly topic: string
  readonly partition: number
  readonly at: number
  readonly timestampMs: number
  readonly #bytes: Buffer
  readonly #keyAt: number
  readonly #keyLength: number
  readonly #valueAt: number
  readonly #valueLength: number
  #headers: RecordHeaders | null = null

  /** `bytes`: from the length of the key on. */
  constructor(place: PartitionName, at: number, timestampMs: number, bytes: Buffer) {
    this.topic = place.topic
    this.partition = place.partition
    this.at = at
    this.timestampMs = timestampMs
    this.#bytes = bytes
    const cursor: Cursor = { bytes, at: 0 }
    this.#keyLength = readVarint(cursor)
    this.#keyAt = cursor.at
    cursor.at += Math.max(0, this.#keyLength)
    this.#valueLength = readVarint(cursor)
    this.#valueAt = cursor.at
  }

  get offset(): bigint {
    return BigInt(this.at)
  }

  get bytes(): number {
    return this.#bytes.length
  }

  get key(): Buffer | null {
    return this.#keyLength < 0 ? null : this.#bytes.subarray(this.#keyAt, this.#keyAt + this.#keyLength)
  }

  get value(): Buffer | null {
    return this.#valueLength < 0 ? null : this.#bytes.subarray(this.#valueAt, this.#valueAt + this.#valueLength)
  }

  get headers(): RecordHeaders {
    this.#headers ??= new LoggedHeaders(this.#bytes, this.#valueAt + Math.max(0, this.#valueLength))
    return this.#headers
  }
}

/** How many numbers say where one header stands: its name's begin and end, its value's begin and end. */
const NUMBERS = 4

/** The headers of a record where they lie, looked for by the bytes of their names. */
class LoggedHeaders implements RecordHeaders {
  readonly #bytes: Buffer
  readonly #places: readonly number[]

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    const cursor: Cursor = { bytes, at }
    const places: number[] = []
    // A name and a value each; what is null has a length of -1 and is taken for empty.
    for (let left = readVarint(cursor) * 2; left > 0; left -= 1) {
      const length = Math.max(0, readVarint(cursor))
      places.push(cursor.at, cursor.at + length)
      cursor.at += length
    }
    this.#places = places
  }

  get(name: string): Buffer | undefined {
    const bytes = this.#bytes
    const wanted = encoded(name)
    for (let index = this.#places.length - NUMBERS; index >= 0; index -= NUMBERS) {
      const nameAt = this.#places[index] ?? 0
      const nameEnd = this.#places[index + 1] ?? 0
      if (nameEnd - nameAt !== wanted.length || !isAt(bytes, nameAt, wanted)) continue
      return bytes.subarray(this.#places[index + 2], this.#places[index + 3])
    }
    return undefined
  }

  *[Symbol.iterator](): Iterator<readonly [string, Buffer]> {
    for (let index = 0; index < this.#places.length; index += NUMBERS) {
      const [nameAt, nameEnd, valueAt, valueEnd] = this.#places.slice(index, index + NUMBERS)
      yield [this.#bytes.toString('utf8', nameAt, nameEnd), this.#bytes.subarray(valueAt, valueEnd)]
    }
  }
}

function isAt(bytes: Buffer, at: number, wanted: Buffer): boolean {
  for (let index = 0; index < wanted.length; index += 1) if (bytes[at + index] !== wanted[index]) return false
  return true
}

/** Names that were ever looked for: a dozen. */
const names = new Map<string, Buffer>()

function encoded(name: string): Buffer {
  let bytes = names.get(name)
  if (bytes === undefined) {
    bytes = Buffer.from(name)
    names.set(name, bytes)
  }
  return bytes
}
