import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newJobId } from '../../job/job.ts'
import { HEADERS } from './job-record.ts'
import { HeaderList, type LogRecord, nameOf } from './record.ts'
import type { LogSpan, TimedLog } from './record-pages.ts'
import { findFrom, SEARCHED_MAX, timeOfId } from './record-search.ts'

const NOW = 1_700_000_000_000

/** Two partitions with a record each millisecond; `ids` by place. */
function logOf(length: number, ids: Readonly<Record<string, string>>) {
  const spans: readonly LogSpan[] = [0, 1].map((partition) => ({ topic: 'bill', partition, start: 0, end: length }))
  let read = 0
  const recordAt = (topic: string, partition: number, offset: number): LogRecord => {
    const id = ids[`${partition}/${offset}`]
    const headers = new HeaderList(id === undefined ? [] : [[HEADERS.id, Buffer.from(id)]])
    return { topic, partition, offset: BigInt(offset), key: null, value: null, headers, timestampMs: NOW + offset }
  }
  const log: TimedLog = {
    offsetsAt: async (places, timeMs) =>
      new Map(places.flatMap((place) => (timeMs >= NOW + length ? [] : [[nameOf(place), Math.max(0, timeMs - NOW)]]))),
    newest: async () => new Map(),
    read: async ({ topic, partition }, from, to) => {
      read += to - from
      return Array.from({ length: to - from }, (_, index) => recordAt(topic, partition, from + index))
    },
  }
  return { log, spans, read: () => read }
}

test('an id of ours says when it was made, and no other does', () => {
  for (const timeMs of [NOW, NOW + 12_345]) assert.equal(timeOfId(newJobId(timeMs)), timeMs)
  for (const id of ['', 'bill:0:1', 'z'.repeat(26), newJobId(NOW).toLowerCase()]) assert.equal(timeOfId(id), null)
})

test('a record is found from its time on, in any partition, without reading what came long before', async () => {
  const [here, late] = [newJobId(NOW + 50_000), newJobId(NOW + 50_000)]
  const { log, spans, read } = logOf(100_000, { '1/50001': here, '0/54000': late })
  assert.deepEqual((await findFrom(log, spans, { id: here, timeMs: NOW + 50_000 }))?.offset, 50_001n)
  assert.ok(read() < 6_000, `${read()} records read`)
  assert.deepEqual((await findFrom(log, spans, { id: late, timeMs: NOW + 50_000 }))?.offset, 54_000n)
})

test('a search that has read its share rejects, and says how to go on; one that has read all finds none', async () => {
  const id = newJobId(NOW)
  const long = logOf(100_000, {})
  await assert.rejects(
    findFrom(long.log, long.spans, { id, timeMs: NOW }),
    /not among the 20000 records .* topic\/partition\/offset/,
  )
  assert.equal(long.read(), SEARCHED_MAX)
  const short = logOf(900, {})
  assert.equal(await findFrom(short.log, short.spans, { id, timeMs: NOW }), null)
})
