import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../testing/test-clock.ts'
import { scan } from './scan.ts'

const numbers = Array.from({ length: 50_000 }, (_, index) => index)

/** A list of which every step takes `stepMs`. */
function over(clock: TestClock, stepMs: number) {
  const sizes: number[] = []
  const step = async (after: number | null, max: number) => {
    sizes.push(max)
    await clock.advance(stepMs)
    const from = after === null ? 0 : after + 1
    const items = numbers.slice(from, from + max)
    return { items, looked: items.length, last: items.length < max ? null : (items.at(-1) ?? null), reachedMs: null }
  }
  return { sizes, step, placeOf: (one: number) => one, clock }
}

test('a plain page is one step, and knows whether there is another', async () => {
  const { sizes, ...list } = over(new TestClock(), 1)
  const first = await scan({ ...list, limit: 50, from: null, matches: null })
  assert.deepEqual([first.items.length, first.next, sizes], [50, 49, [51]])
  const last = await scan({ ...list, limit: 50, from: 49_949, matches: null })
  assert.deepEqual([last.items.length, last.next], [50, null])
  const none = await scan({ ...list, limit: 50, from: 49_999, matches: null })
  assert.deepEqual([none.items, none.next], [[], null])
})

test('a search stops after 20,000 items or 35 ms, says so, and goes on', async () => {
  const rare = (one: number) => one % 15_000 === 14_999
  const quick = over(new TestClock(), 0)
  const first = await scan({ ...quick, limit: 50, from: null, matches: rare })
  assert.ok(first.looked >= 20_000 && first.looked <= 25_000)
  assert.deepEqual([first.items, first.next], [[14_999], first.looked - 1])
  const slow = over(new TestClock(), 17)
  const bounded = await scan({ ...slow, limit: 50, from: null, matches: rare })
  assert.deepEqual([bounded.items, slow.sizes], [[], [51, 50]])
  assert.deepEqual([bounded.looked, bounded.next], [101, 100])
  const found: number[] = []
  for (let from: number | null = null, pages = 0; pages < 100; pages += 1) {
    const page: Awaited<ReturnType<typeof scan<number, number>>> = await scan({
      ...quick,
      limit: 2,
      from,
      matches: rare,
    })
    found.push(...page.items)
    if (page.next === null) break
    from = page.next
  }
  assert.deepEqual(found, numbers.filter(rare))
})

test('a page of a search that is full ends where it is full', async () => {
  const list = over(new TestClock(), 0)
  const page = await scan({ ...list, limit: 3, from: null, matches: (one) => one % 2 === 0 })
  assert.deepEqual([page.items, page.next], [[0, 2, 4], 4])
})
