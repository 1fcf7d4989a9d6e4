import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HeaderList, type LogRecord, nameOf, type PartitionName } from './record.ts'
import { type LogSpan, newestRecords, type TimedLog } from './record-pages.ts'

interface Partition extends LogSpan {
  readonly records: readonly LogRecord[]
}

/** Times that go back and forth, many of them equal, and offsets without a record. */
const partition = fc.record({
  skipped: fc.nat(3),
  steps: fc.array(
    fc.record({
      gap: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, fc.nat(150)),
      ms: fc.oneof(fc.constant(0), fc.integer({ min: -40, max: 60 }), fc.integer({ min: -90_000, max: 90_000 })),
    }),
    { maxLength: 60 },
  ),
})

type Drawn = typeof partition extends fc.Arbitrary<infer Value> ? Value : never

function toPartition({ skipped, steps }: Drawn, index: number): Partition {
  const place = { topic: index < 2 ? 'bill' : 'mail', partition: index % 2 }
  let [offset, timestampMs] = [skipped, 1_700_000_000_000]
  const records = steps.map(({ gap, ms }): LogRecord => {
    offset += gap
    timestampMs += ms
    const record = {
      ...place,
      offset: BigInt(offset),
      key: null,
      value: null,
      headers: new HeaderList([]),
      timestampMs,
    }
    offset += 1
    return record
  })
  return { ...place, start: skipped, end: offset, records }
}

/** Answers as a broker does, and counts what is asked and read. */
function logOf(partitions: readonly Partition[]) {
  const of = (place: PartitionName): Partition =>
    partitions.find((one) => nameOf(one) === nameOf(place)) ?? assert.fail(`no ${nameOf(place)}`)
  const told = { questions: 0, records: 0 }
  const log: TimedLog = {
    offsetsAt: async (places, timeMs) => {
      told.questions += 1
      assert.ok(Number.isInteger(timeMs) && timeMs >= 0, `the time ${timeMs}`)
      const found = places.map(
        (place) => [place, of(place).records.find((record) => record.timestampMs >= timeMs)] as const,
      )
      return new Map(found.flatMap(([place, record]) => (record ? [[nameOf(place), Number(record.offset)]] : [])))
    },
    newest: async (places) =>
      new Map(
        places
          .filter((place) => of(place).records.length > 0)
          .map((place) => [nameOf(place), Math.max(...of(place).records.map(({ timestampMs }) => timestampMs))]),
      ),
    read: async (place, from, to) => {
      const records = of(place).records.filter(({ offset }) => offset >= from && offset < to)
      told.records += records.length
      return records
    },
  }
  return { log, told }
}

/** By the latest time up to each, then by partition, then the last first. */
function inWantedOrder(partitions: readonly Partition[]): readonly string[] {
  const standing = partitions.flatMap(({ records }, index) => {
    let atMs = Number.NEGATIVE_INFINITY
    return records.map((record) => {
      atMs = Math.max(atMs, record.timestampMs)
      return { record, atMs, index }
    })
  })
  return standing
    .sort((a, b) => b.atMs - a.atMs || a.index - b.index || Number(b.record.offset - a.record.offset))
    .map(({ record }) => placeOf(record))
}

const placeOf = (record: LogRecord): string => `${nameOf(record)}/${record.offset}`

test('the pages have every record once, newest first, whatever the clocks of the producers say', async () => {
  const seed = Number(process.env.SEED ?? 4_711)
  await fc.assert(
    fc.asyncProperty(fc.array(partition, { maxLength: 4 }), fc.integer({ min: 1, max: 40 }), async (drawn, limit) => {
      const partitions = drawn.map(toPartition)
      const { log } = logOf(partitions)
      const listed: LogRecord[] = []
      for (;;) {
        const before = listed.at(-1)
        const page = await newestRecords(log, partitions, { limit, ...(before && { before }) })
        assert.ok(page.length <= limit)
        listed.push(...page)
        if (page.length < limit) break
      }
      assert.deepEqual(listed.map(placeOf), inWantedOrder(partitions))
    }),
    { seed, numRuns: 300 },
  )
})

test('a page of a long log asks a few times and reads little more than it lists', async () => {
  // A record every 10 ms for a year and a half would be as far back; here 40 thousand that came in bursts of a thousand.
  const steps = Array.from({ length: 40_000 }, (_, index) => ({ gap: 0, ms: index % 1_000 === 0 ? 3_600_000 : 0 }))
  const partitions = [0, 1, 2].map((index) => toPartition({ skipped: 0, steps }, index))
  const { log, told } = logOf(partitions)
  const first = await newestRecords(log, partitions, { limit: 20 })
  const before = first.at(-1) ?? assert.fail('an empty page')
  await newestRecords(log, partitions, { limit: 20, before })
  assert.deepEqual(first.map(placeOf), inWantedOrder(partitions).slice(0, 20))
  assert.ok(told.questions <= 60, `${told.questions} questions`)
  assert.ok(told.records <= 1_000, `${told.records} records read`)
})
