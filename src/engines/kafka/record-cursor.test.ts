import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecordsBatch, type MessageToProduce } from '@platformatic/kafka'
import { loadClient } from './driver.ts'
import type { LoggedRecord } from './logged-record.ts'
import { HeaderNames, headerText } from './record.ts'
import { RecordCursor } from './record-cursor.ts'

const client = await loadClient()
const place = { topic: 'escrow.commands', partition: 3 }
const TIME_MS = Date.UTC(2026, 10, 16)

const cursorOf = (batches: Buffer, from = 0): RecordCursor => new RecordCursor(client, place, batches, from)

function readAll(cursor: RecordCursor): readonly LoggedRecord[] {
  const records: LoggedRecord[] = []
  for (let record = cursor.next(); record !== null; record = cursor.next()) records.push(record)
  return records
}

/** A batch as the client's producer writes it, at an offset as the broker gives it one. */
function batchOf(
  messages: readonly Omit<MessageToProduce<Buffer | null, Buffer | null, Buffer, Buffer>, 'topic'>[],
  offset = 0,
  compression: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd' = 'none',
): Buffer {
  const timed = messages.map((message, n) => ({
    ...message,
    topic: place.topic,
    timestamp: BigInt(TIME_MS + n * 1_000),
  }))
  // The client's own type asks for keys and values that are there, though it writes those that are null.
  const bytes = createRecordsBatch(timed as Parameters<typeof createRecordsBatch>[0], { compression }).buffer
  bytes.writeBigInt64BE(BigInt(offset))
  return bytes
}

const text = (n: number) => ({ key: null, value: Buffer.from(`{"n":${n}}`) })
const numbersOf = (records: readonly LoggedRecord[]) => records.map(({ at, value }) => [at, String(value)])

test('a record is read with its place, its time, its key, its value and its headers', () => {
  const headers = new Map([
    [Buffer.from('trace'), Buffer.from('first')],
    [Buffer.from('größe'), Buffer.from([0xff])],
    [Buffer.from('trace'), Buffer.from('last')],
  ])
  const far = 9_007_000_000_000
  const batch = batchOf([{ key: Buffer.from('deal-7'), value: Buffer.alloc(70_000, 'x'), headers }, text(1)], far)
  const [first, second] = readAll(cursorOf(batch, far))
  assert.ok(first !== undefined && second !== undefined)
  assert.deepEqual([first.topic, first.partition, first.offset], ['escrow.commands', 3, BigInt(far)])
  assert.deepEqual([String(first.key), first.value?.length, first.timestampMs], ['deal-7', 70_000, TIME_MS])
  // A name that was written twice has its last value.
  assert.equal(String(first.headers.get('trace')), 'last')
  assert.deepEqual(first.headers.get('größe'), Buffer.from([0xff]))
  assert.equal(first.headers.get('trac'), undefined)
  assert.deepEqual(new Map(first.headers).size, 2)
  assert.deepEqual([second.at, second.key, second.timestampMs], [far + 1, null, TIME_MS + 1_000])
  assert.deepEqual([...second.headers], [])
})

test('a record without a value, and one with an empty one', () => {
  const records = readAll(
    cursorOf(
      batchOf([
        { key: null, value: null },
        { key: Buffer.alloc(0), value: Buffer.alloc(0) },
      ]),
    ),
  )
  assert.deepEqual(
    records.map(({ key, value }) => [key?.length ?? null, value?.length ?? null]),
    [
      [null, null],
      [0, 0],
    ],
  )
})

for (const compression of ['gzip', 'snappy', 'lz4', 'zstd'] as const) {
  test(`what is compressed by ${compression} is read as what it was`, () => {
    const messages = Array.from({ length: 300 }, (_, n) => text(n))
    const records = readAll(cursorOf(batchOf(messages, 7, compression)))
    assert.deepEqual(numbersOf(records), numbersOf(readAll(cursorOf(batchOf(messages, 7)))))
    assert.equal(records.length, 300)
  })
}

test('a batch that is cut is left for the next fetch', () => {
  const [one, two] = [batchOf([text(0), text(1)], 10), batchOf([text(2)], 12)]
  for (let cut = 1; cut <= two.length; cut += 7) {
    const cursor = cursorOf(Buffer.concat([one, two.subarray(0, two.length - cut)]), 10)
    assert.deepEqual([cursor.count, cursor.end], [2, 12])
    assert.deepEqual(
      readAll(cursor).map(({ at }) => at),
      [10, 11],
    )
  }
  assert.equal(cursorOf(Buffer.concat([one, two]), 10).end, 13)
  assert.deepEqual([cursorOf(Buffer.alloc(0), 10).end, readAll(cursorOf(Buffer.alloc(0)))], [10, []])
})

test('marks of transactions are no records, and are passed', () => {
  const mark = batchOf([text(9)], 11)
  mark.writeInt16BE(mark.readInt16BE(21) | (1 << 5), 21)
  const cursor = cursorOf(Buffer.concat([batchOf([text(0)], 10), mark, batchOf([text(1)], 12)]), 10)
  assert.deepEqual([cursor.count, cursor.end], [2, 13])
  assert.deepEqual(
    readAll(cursor).map(({ at }) => at),
    [10, 12],
  )
  assert.deepEqual([cursorOf(mark, 11).count, cursorOf(mark, 11).end], [0, 12])
})

/** As a transactional producer has written it. */
function ofProducer(batch: Buffer, producerId: number, attributes = 0): Buffer {
  batch.writeInt16BE(batch.readInt16BE(21) | TRANSACTIONAL | attributes, 21)
  batch.writeBigInt64BE(BigInt(producerId), 43)
  return batch
}

/** The mark at the end of a transaction, as a broker writes it: its key is a version and a type. */
function markOf(producerId: number, offset: number, type: 'abort' | 'commit'): Buffer {
  const key = Buffer.from([0, 0, 0, type === 'abort' ? 0 : 1])
  return ofProducer(batchOf([{ key, value: Buffer.alloc(6) }], offset), producerId, CONTROL)
}

const [TRANSACTIONAL, CONTROL] = [1 << 4, 1 << 5]

test('of what a producer has written, what lies before the mark of an abort is dropped, and nothing else', () => {
  const batches = [
    ofProducer(batchOf([text(0), text(1)], 10, 'gzip'), 7),
    ofProducer(batchOf([text(2)], 12), 8),
    batchOf([text(3)], 13),
    ofProducer(batchOf([text(4)], 14), 7),
    markOf(7, 15, 'abort'),
    // The next two transactions of the same producer: one that counts, and one more that does not.
    ofProducer(batchOf([text(5)], 16), 7),
    markOf(7, 17, 'commit'),
    markOf(8, 18, 'commit'),
    ofProducer(batchOf([text(6)], 19), 7),
    markOf(7, 20, 'abort'),
    batchOf([text(7)], 21),
  ]
  const aborted = [
    { producerId: 7n, firstOffset: 19 },
    { producerId: 7n, firstOffset: 10 },
  ]
  const cursor = new RecordCursor(client, place, Buffer.concat(batches), 10, aborted)
  assert.deepEqual([cursor.count, cursor.end], [4, 22])
  assert.deepEqual(
    readAll(cursor).map(({ at }) => at),
    [12, 13, 16, 21],
  )
  assert.equal(cursor.count, 0)
  const all = cursorOf(Buffer.concat(batches), 10)
  assert.deepEqual(
    readAll(all).map(({ at }) => at),
    [10, 11, 12, 13, 14, 16, 19, 21],
  )
})

test('an abort is known where the transaction began before the fetch or its mark comes after it', () => {
  const aborted = [{ producerId: 7n, firstOffset: 2 }]
  const middle = Buffer.concat([ofProducer(batchOf([text(0)], 10), 7), ofProducer(batchOf([text(1)], 11), 7)])
  const cursor = new RecordCursor(client, place, middle, 10, aborted)
  assert.deepEqual([cursor.count, cursor.end, readAll(cursor)], [0, 12, []])
  // One that begins behind what was sent concerns nothing of it.
  const later = new RecordCursor(client, place, middle, 10, [{ producerId: 7n, firstOffset: 12 }])
  assert.equal(later.count, 2)
  // Compaction may leave the head of a batch alone.
  const bare = markOf(7, 10, 'abort').subarray(0, 61)
  bare.writeInt32BE(61 - 12, 8)
  bare.writeInt32BE(0, 57)
  assert.deepEqual(new RecordCursor(client, place, bare, 10, aborted).end, 11)
})

test('where the topic has the time of the broker, all records of a batch have it', () => {
  const batch = batchOf([text(0), text(1)])
  batch.writeInt16BE(1 << 3, 21)
  batch.writeBigInt64BE(BigInt(TIME_MS + 60_000), 35)
  assert.deepEqual(
    readAll(cursorOf(batch)).map(({ timestampMs }) => timestampMs),
    [TIME_MS + 60_000, TIME_MS + 60_000],
  )
})

test('what is no log is an error and not an endless loop', () => {
  const old = batchOf([text(0)])
  old.writeInt8(1, 16)
  assert.throws(() => cursorOf(old), /before 2017/)
  const damaged = batchOf([text(0)])
  damaged.fill(0xff, 61)
  assert.throws(() => readAll(cursorOf(damaged)), RangeError)
  const short = batchOf([text(0)])
  short.writeInt32BE(-12, 8)
  assert.throws(() => cursorOf(short), /shorter than its own head/)
  const unknown = batchOf([text(0)])
  unknown.writeInt16BE(7, 21)
  assert.throws(() => readAll(cursorOf(unknown)), /unknown way/)
})

test('a record that is moved into memory of its own stays what it was', () => {
  const headers = new Map([[Buffer.from('millrace-id'), Buffer.from('a1')]])
  const keyed = { key: Buffer.from('deal-7'), value: Buffer.from('{"n":1}'), headers }
  const [, alone] = readAll(cursorOf(batchOf([text(0), keyed, text(2)])))
  const [, first] = readAll(cursorOf(batchOf([text(0), keyed, text(2)])))
  assert.ok(alone !== undefined && first !== undefined)
  for (const time of ['once', 'twice']) {
    alone.detach()
    assert.deepEqual([alone.key, alone.value, alone.bytes], [first.key, first.value, first.bytes], time)
    assert.deepEqual([alone.keyBytes, alone.valueText(), [...alone.headers]], ['deal-7', '{"n":1}', [...first.headers]])
  }
  assert.ok((alone.value?.buffer.byteLength ?? 0) < (first.value?.buffer.byteLength ?? 0))
})

test('headers that are looked for together are found as one by one', () => {
  const [one, two, three] = ['millrace-id', 'millrace-attempts', 'millrace-tenant']
  const names = new HeaderNames([one, two, three].map(String))
  const messages = [
    { ...text(0), headers: [one, 'a', 'millrace-ib', 'b', two, '3'] },
    { ...text(1), headers: [two, '3', two, '44', 'x'.repeat(100), 'c'] },
    { ...text(2), headers: [one, 'Grüße', three, '\xff'] },
    { ...text(3), headers: [] },
  ].map(({ headers, ...rest }) => {
    const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]]] : []))
    return {
      ...rest,
      headers: new Map(pairs.map(([name = '', value = '']) => [Buffer.from(name), latin1OrText(value)])),
    }
  })
  const records = readAll(cursorOf(batchOf(messages)))
  const textsOf = (record: LoggedRecord) => names.names.map((_, place) => record.textAt(names, place))
  for (const record of records) {
    const singly = names.names.map((name) => headerText(record.headers, name))
    assert.deepEqual(textsOf(record), singly)
  }
  assert.deepEqual(records.map(textsOf).slice(1, 3), [
    [null, '44', null],
    ['Grüße', null, null],
  ])
  assert.deepEqual(
    records.map((record) => [record.found(names), record.found(names)]),
    [
      [0b011, 0b011],
      [0b010, 0b010],
      [0b101, 0b101],
      [0, 0],
    ],
  )
})

/** A single byte beyond ASCII is no text. */
function latin1OrText(value: string): Buffer {
  return value === '\xff' ? Buffer.from([0xff]) : Buffer.from(value)
}

test('keys that are no text stay apart, and no key is none', () => {
  const keys = [Buffer.from([0xff]), Buffer.from([0xfe]), null]
  const records = readAll(cursorOf(batchOf(keys.map((key) => ({ ...text(0), key })))))
  assert.deepEqual(
    records.map(({ keyBytes }) => keyBytes),
    ['\xff', '\xfe', null],
  )
})
