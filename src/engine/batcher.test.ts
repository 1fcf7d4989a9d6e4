import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Batcher } from './batcher.ts'

const isRefused = (error: unknown): boolean => error instanceof Error && error.message === 'refused'
const size = { flightsMax: 1, itemsMax: 10, isWorthRepeating: isRefused }

describe('gathering calls', () => {
  test('calls of one turn share a statement, and each hears its own answers', async () => {
    const flights: (readonly number[])[] = []
    const batcher = new Batcher<number, number>(async (items) => {
      flights.push(items)
      return items.map((item) => item * 10)
    }, size)
    const answers = await Promise.all([batcher.add([1, 2]), batcher.add([3]), batcher.add([])])
    assert.deepEqual(answers, [[10, 20], [30], []])
    assert.deepEqual(flights, [[1, 2, 3]])
  })

  test('with the whole turn, calls share a statement though others ran between them', async () => {
    for (const takesWholeTurn of [false, true]) {
      const flights: (readonly number[])[] = []
      const batcher = new Batcher<number, number>(
        async (items) => {
          flights.push(items)
          return items
        },
        { ...size, flightsMax: 2, takesWholeTurn },
      )
      const later = async (ticks: number): Promise<void> => {
        for (let tick = 0; tick < ticks; tick += 1) await null
        await batcher.add([ticks])
      }
      await Promise.all([later(0), later(10), later(20)])
      assert.deepEqual(flights, takesWholeTurn ? [[0, 10, 20]] : [[0], [10], [20]])
    }
  })

  test('a statement grows no bigger than told, unless one call is', async () => {
    const flights: number[] = []
    const batcher = new Batcher<number, number>(async (items) => {
      flights.push(items.length)
      return items
    }, size)
    const many = Array.from({ length: 25 }, (_, index) => index)
    await Promise.all([batcher.add([1]), batcher.add(many), batcher.add([2]), batcher.add([3])])
    assert.deepEqual(flights, [1, 25, 2])
  })

  test('a call that the server refuses fails alone', async () => {
    const batcher = new Batcher<number, number>(async (items) => {
      if (items.includes(13)) throw new Error('refused')
      return items
    }, size)
    const [good, bad, last] = await Promise.allSettled([batcher.add([1]), batcher.add([13]), batcher.add([2])])
    assert.deepEqual([good.status, bad.status, last.status], ['fulfilled', 'rejected', 'fulfilled'])
  })

  test('a statement whose answer was lost is not sent again', async () => {
    let flights = 0
    const batcher = new Batcher<number, number>(async () => {
      flights += 1
      throw new Error('gone')
    }, size)
    const outcomes = await Promise.allSettled([batcher.add([1]), batcher.add([2])])
    assert.deepEqual([flights, ...outcomes.map(({ status }) => status)], [1, 'rejected', 'rejected'])
  })

  test('idle waits for what was added', async () => {
    const gate = Promise.withResolvers<void>()
    const batcher = new Batcher<number, number>(async (items) => {
      await gate.promise
      return items
    }, size)
    let answered = 0
    for (let call = 0; call < 3; call += 1) void batcher.add([call]).then(() => (answered += 1))
    const idle = batcher.idle()
    gate.resolve()
    await idle
    assert.equal(answered, 3)
  })
})
