import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KeyQueueOptions, KeyQueues, QueuedRecord } from './key-queues.ts'

class Item extends QueuedRecord {
  readonly n: number
  readonly key: string | null
  readonly bytes: number

  constructor(n: number, key: string | null, bytes: number) {
    super()
    this.n = n
    this.key = key
    this.bytes = bytes
  }
}

function queues(options: Partial<KeyQueueOptions> = {}): KeyQueues<Item> {
  return new KeyQueues({ countMax: 100, bytesMax: 1_000, hold: 'key', ...options })
}

const item = (n: number, key: string | null, bytes = 1): Item => new Item(n, key, bytes)

function takeAll(from: KeyQueues<Item>, nowMs = 0): readonly Item[] {
  const taken: Item[] = []
  for (let next = from.take(nowMs); next !== null; next = from.take(nowMs)) taken.push(next)
  return taken
}

test('one record of each key at a time, and records without a key all at once', () => {
  const buffer = queues()
  for (const [n, key] of ['a', 'b', 'a', null, null, 'b'].entries()) buffer.add(item(n, key))
  const first = takeAll(buffer)
  assert.deepEqual(
    first.map(({ n }) => n),
    [0, 1, 3, 4],
  )
  for (const taken of first) assert.equal(buffer.finish(taken), true)
  const second = takeAll(buffer)
  assert.deepEqual(
    second.map(({ n }) => n),
    [2, 5],
  )
  for (const taken of second) buffer.finish(taken)
  assert.deepEqual([buffer.count, buffer.bytes, buffer.taken], [0, 0, 0])
})

// X154
test('a parked key keeps back nobody but itself', () => {
  const buffer = queues()
  for (const [n, key] of ['a', 'a', 'b', 'b'].entries()) buffer.add(item(n, key))
  const [a, b] = takeAll(buffer)
  assert.ok(a !== undefined && b !== undefined)
  assert.equal(buffer.park(a, 5_000), true)
  buffer.finish(b)
  assert.equal(buffer.take(4_999)?.n, 3)
  assert.equal(buffer.take(4_999), null)
  assert.equal(buffer.nextDueMs, 5_000)
  assert.equal(buffer.take(5_000)?.n, 0)
  assert.equal(buffer.take(5_000), null, 'its successor overtook it')
  buffer.finish(a)
  assert.equal(buffer.take(5_000)?.n, 1)
  assert.equal(buffer.nextDueMs, Number.POSITIVE_INFINITY)
})

test('what is due again goes before what has never run, the earliest first', () => {
  const buffer = queues()
  for (const [n, key] of ['a', 'b', 'c'].entries()) buffer.add(item(n, key))
  const [a, b] = [buffer.take(0), buffer.take(0)]
  assert.ok(a !== null && b !== null)
  buffer.park(a, 200)
  buffer.park(b, 100)
  assert.deepEqual(
    takeAll(buffer, 300).map(({ n }) => n),
    [1, 0, 2],
  )
})

// X154
test('a partition that is held hands out nothing else until its record is finished', () => {
  const buffer = queues({ hold: 'partition' })
  for (const [n, key] of ['a', 'b', 'c'].entries()) buffer.add(item(n, key))
  const a = buffer.take(0)
  assert.ok(a !== null)
  buffer.park(a, 1_000)
  assert.equal(buffer.take(999), null)
  assert.equal(buffer.take(1_000), a)
  assert.equal(buffer.take(1_000), null, 'another one began while it ran again')
  buffer.finish(a)
  assert.deepEqual(
    takeAll(buffer, 1_000).map(({ n }) => n),
    [1, 2],
  )
})

test('it is full by count and by bytes, with what is handed out and parked', () => {
  const counted = queues({ countMax: 2 })
  counted.add(item(0, 'a'))
  assert.equal(counted.isFull, false)
  counted.add(item(1, 'a'))
  const taken = counted.take(0)
  assert.ok(taken !== null)
  counted.park(taken, 10)
  assert.equal(counted.isFull, true)
  const again = counted.take(10)
  assert.ok(again !== null)
  counted.finish(again)
  assert.equal(counted.isFull, false)
  const heavy = queues({ bytesMax: 10 })
  heavy.add(item(0, null, 10))
  assert.equal(heavy.isFull, true)
})

test('what was not handed out can be neither finished nor parked, and nothing twice', () => {
  const buffer = queues()
  const one = item(0, 'a')
  buffer.add(one)
  assert.equal(buffer.finish(one), false)
  assert.equal(buffer.park(one, 1), false)
  buffer.take(0)
  assert.equal(buffer.finish(one), true)
  assert.equal(buffer.finish(one), false)
})

test('a hundred thousand records of many keys keep their order per key', () => {
  const buffer = queues({ countMax: Number.POSITIVE_INFINITY, bytesMax: Number.POSITIVE_INFINITY })
  for (let n = 0; n < 100_000; n += 1) buffer.add(item(n, `k${n % 500}`))
  const last = new Map<string | null, number>()
  for (let taken = takeAll(buffer); taken.length > 0; taken = takeAll(buffer)) {
    for (const one of taken) {
      assert.ok((last.get(one.key) ?? -1) < one.n)
      last.set(one.key, one.n)
      buffer.finish(one)
    }
  }
  assert.equal(buffer.count, 0)
})
