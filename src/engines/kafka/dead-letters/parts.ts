/**
 * A letter that is larger than its topic takes is written as several records of one key: parts of its value, then the
 * last part with the letter's headers and the offsets of those before it. Read, it is one record again, where its last
 * part stands.
 */

import { bytesOf } from '../producer.ts'
import {
  HeaderList,
  headerText,
  type LogRecord,
  type NewRecord,
  type PartitionName,
  type RecordHeaders,
} from '../record.ts'
import type { LetterLog } from './letter-log.ts'

export const PART_HEADERS = Object.freeze({
  /** On every part: which one of how many, such as `2/3`. */
  part: 'x-dlq-part',
  /** On the last: the offsets of the others in its partition, in their order. */
  before: 'x-dlq-parts-before',
})
const NAMES: ReadonlySet<string> = new Set(Object.values(PART_HEADERS))

/** With less room than this for a part, more would be written around it than of it. */
const PART_BYTES_MIN = 1_024
/** What a batch and our own headers take. */
const AROUND_BYTES = 256
/** An offset in a header, with its comma, at most. */
const OFFSET_BYTES = 20

/** The values of the parts; null where the topic takes too little for any. */
export function partsOf(letter: NewRecord, bytesMax: number): readonly Buffer[] | null {
  const value = letter.value ?? Buffer.alloc(0)
  const around = bytesOf(letter) - value.length + AROUND_BYTES
  const most = Math.ceil(value.length / Math.max(PART_BYTES_MIN, bytesMax - around))
  const room = bytesMax - around - most * OFFSET_BYTES * 2
  if (room < PART_BYTES_MIN) return null
  return Array.from({ length: Math.ceil(value.length / room) }, (_, index) =>
    value.subarray(index * room, (index + 1) * room),
  )
}

/** Writes the parts one after another. A crash before the last leaves parts that are never read. */
export async function writeParts(
  letter: NewRecord,
  parts: readonly Buffer[],
  append: (record: NewRecord) => Promise<{ readonly partition: number; readonly offset: bigint }>,
): Promise<void> {
  const offsets: bigint[] = []
  let place = letter.partition
  for (const [index, value] of parts.entries()) {
    const isLast = index === parts.length - 1
    const part = [PART_HEADERS.part, Buffer.from(`${index + 1}/${parts.length}`)] as const
    const before = [PART_HEADERS.before, Buffer.from(offsets.join())] as const
    const { partition, offset } = await append({
      ...letter,
      ...(place !== undefined && { partition: place }),
      value,
      headers: new HeaderList(isLast ? [...letter.headers, part, before] : [part]),
    })
    place = partition
    offsets.push(offset)
  }
}

/** As `readRange` of a log that has parts: each letter whole, and parts alone are passed over. */
export async function readWhole(
  readRange: (place: PartitionName, range: Parameters<LetterLog['readRange']>[2]) => Promise<readonly LogRecord[]>,
  place: PartitionName,
  range: Parameters<LetterLog['readRange']>[2],
): Promise<readonly LogRecord[]> {
  const readOne = async (offset: bigint): Promise<Buffer | null> => {
    const [record] = await readRange(place, { from: offset, to: offset + 1n, max: 1 })
    return record?.offset === offset ? record.value : null
  }
  for (let { from } = range; from < range.to; ) {
    const records = await readRange(place, { ...range, from })
    const last = records.at(-1)
    if (last === undefined) return []
    const whole: LogRecord[] = []
    for (const record of records) {
      const before = offsetsBefore(record)
      if (before === null) whole.push(record)
      else if (before !== 'a part') whole.push(await joined(record, before, readOne))
    }
    if (whole.length > 0) return whole
    from = last.offset + 1n
  }
  return []
}

/** Null for a record that is no part. */
function offsetsBefore({ headers }: LogRecord): readonly bigint[] | 'a part' | null {
  const part = headerText(headers, PART_HEADERS.part)
  const [, index, count] = /^(\d{1,6})\/(\d{1,6})$/.exec(part ?? '') ?? []
  if (index === undefined || count === undefined) return null
  if (index !== count) return 'a part'
  const before = headerText(headers, PART_HEADERS.before) ?? ''
  return before
    .split(',')
    .filter((text) => /^\d{1,19}$/.test(text))
    .map(BigInt)
}

async function joined(
  last: LogRecord,
  before: readonly bigint[],
  readOne: (offset: bigint) => Promise<Buffer | null>,
): Promise<LogRecord> {
  const values = await Promise.all(before.map(readOne))
  const found = values.filter((value) => value !== null)
  const isTorn = found.length < values.length
  const { topic, partition, offset, key, timestampMs } = last
  return {
    ...{ topic, partition, offset, key, timestampMs, headers: withoutParts(last.headers) },
    // What is left of a value is no value.
    value: isTorn ? null : Buffer.concat([...found, last.value ?? Buffer.alloc(0)]),
    parts: { begin: before[0] ?? offset, isTorn },
  }
}

export function withoutParts(headers: RecordHeaders): RecordHeaders {
  return new HeaderList([...headers].filter(([name]) => !NAMES.has(name)))
}
