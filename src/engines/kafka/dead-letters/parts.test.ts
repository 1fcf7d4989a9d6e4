import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ArrayLog } from '../../../../test/fixtures/array-log.ts'
import { TestClock } from '../../../testing/test-clock.ts'
import { bytesOf } from '../producer.ts'
import type { LogRecord, NewRecord } from '../record.ts'
import { readLetter } from './letter.ts'
import { PART_HEADERS, partsOf, readWhole, writeParts } from './parts.ts'

const letter = (length: number, id = 'jobs/0/1/group'): NewRecord => ({
  topic: 'jobs.dlq',
  key: Buffer.from(id),
  value: Buffer.alloc(length, id),
  headers: new Map([['kafka_dlt-original-topic', Buffer.from('jobs')]]),
})

async function written(log: ArrayLog, one: NewRecord, bytesMax: number): Promise<void> {
  const parts = partsOf(one, bytesMax)
  assert.ok(parts !== null)
  await writeParts(one, parts, async (record) => {
    assert.ok(bytesOf(record) <= bytesMax, `a part of ${bytesOf(record)} bytes`)
    return log.append(record)
  })
}

const readAll = (log: ArrayLog, max = 100): Promise<readonly LogRecord[]> =>
  readWhole(
    (place, range) => log.readRange(place.topic, place.partition, range),
    { topic: 'jobs.dlq', partition: 0 },
    {
      ...{ from: 0n, to: 1_000n, max },
    },
  )

test('parts fit into what the topic takes and are one letter again, where the last of them stands', async () => {
  const log = new ArrayLog(new TestClock(), 1)
  log.append(letter(10, 'before'))
  await written(log, letter(100_000), 10_000)
  const records = await readAll(log)
  assert.equal(records.length, 2)
  const [, whole] = records
  assert.ok(whole)
  assert.ok(whole.value?.equals(letter(100_000).value ?? Buffer.alloc(0)))
  assert.deepEqual([whole.offset, whole.parts], [11n, { begin: 1n, isTorn: false }])
  assert.deepEqual(
    [...whole.headers].map(([name]) => name),
    ['kafka_dlt-original-topic'],
  )
})

test('a page of nothing but parts is not the end', async () => {
  const log = new ArrayLog(new TestClock(), 1)
  await written(log, letter(100_000), 10_000)
  const [whole, ...others] = await readAll(log, 2)
  assert.deepEqual([whole?.offset, others], [10n, []])
})

test('a topic that takes next to nothing takes no parts', () => {
  assert.equal(partsOf(letter(100_000), 100), null)
  assert.equal(partsOf(letter(100_000), 1_300), null)
})

test('a letter with deleted parts is listed, and is not replayed as something else', async () => {
  const log = new ArrayLog(new TestClock(), 1)
  await written(log, letter(100_000), 10_000)
  await log.deleteBefore('jobs.dlq', 0, 3n)
  const [torn] = await readAll(log)
  assert.ok(torn)
  const read = readLetter(torn)
  assert.match(read.unreplayable ?? '', /parts of letter .* are deleted/)
  assert.equal(read.replayed(), null)
})

test('what an earlier life of the record says of parts is not taken for its own', async () => {
  const log = new ArrayLog(new TestClock(), 1)
  const headers = new Map([[PART_HEADERS.part, Buffer.from('nonsense')]])
  log.append({ ...letter(10), headers })
  assert.equal((await readAll(log)).length, 1)
})
