import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENGINES, stageOn } from '../../test/fixtures/admin.ts'
import { TestClock } from '../testing/test-clock.ts'
import { scan } from './paging.ts'

const numbers = Array.from({ length: 10_000 }, (_, index) => index)

/** A list of which every read takes `readMs`. */
function over(clock: TestClock, readMs: number) {
  const sizes: number[] = []
  const read = async (after: number | null, max: number) => {
    sizes.push(max)
    await clock.advance(readMs)
    const from = after === null ? 0 : after + 1
    return numbers.slice(from, from + max)
  }
  return { sizes, read, placeOf: (one: number) => one, clock }
}

test('a plain page is one read, and knows whether there is another', async () => {
  const { sizes, ...list } = over(new TestClock(), 1)
  const first = await scan({ ...list, limit: 50, from: null, matches: null })
  assert.deepEqual([first.items.length, first.next, sizes], [50, 49, [51]])
  const last = await scan({ ...list, limit: 50, from: 9_949, matches: null })
  assert.deepEqual([last.items.length, last.next], [50, null])
  const none = await scan({ ...list, limit: 50, from: 9_999, matches: null })
  assert.deepEqual(none, { items: [], next: null })
})

test('a search stops after 2000 items or 25 ms, and its cursor goes on', async () => {
  const rare = (one: number) => one % 1_500 === 1_499
  const quick = over(new TestClock(), 0)
  const first = await scan({ ...quick, limit: 50, from: null, matches: rare })
  assert.deepEqual(first, { items: [1_499], next: 1_999 })
  const slow = over(new TestClock(), 10)
  const bounded = await scan({ ...slow, limit: 50, from: null, matches: rare })
  assert.deepEqual([bounded, slow.sizes.length], [{ items: [], next: 299 }, 3])
  const found: number[] = []
  for (let from: number | null = null, pages = 0; pages < 100; pages += 1) {
    const { items, next }: { items: number[]; next: number | null } = await scan({
      ...{ ...quick, limit: 2, from, matches: rare },
    })
    found.push(...items)
    if (next === null) break
    from = next
  }
  assert.deepEqual(found, numbers.filter(rare))
})

test('a page of a search that is full ends where it is full', async () => {
  const list = over(new TestClock(), 0)
  const even = (one: number) => one % 2 === 0
  assert.deepEqual(await scan({ ...list, limit: 3, from: null, matches: even }), { items: [0, 2, 4], next: 4 })
})

for (const url of ENGINES) {
  test(`jobs on ${url} are found by id, type, key, tenant and error, whatever the case`, async (t) => {
    const { mill, ask, bury } = await stageOn(t, url)
    const { id } = await mill.enqueue(
      'bill',
      { n: 1 },
      { key: 'Order-77', tenant: { orgId: 'acme', workspaceId: 'north' } },
    )
    const dead = await bury('mail', 'no mailbox FOR-ANN')
    const search = async (text: string) => {
      const { items } = await ask('listJobs', { query: { search: text } })
      return items.map((job) => job.id).toSorted()
    }
    for (const text of [id, id.slice(-8).toLowerCase(), 'order-77', 'ACME', 'North', 'BIL']) {
      assert.deepEqual(await search(text), [id], text)
    }
    assert.deepEqual(await search('for-ann'), [dead])
    assert.deepEqual(await search('nobody'), [])
    const { items } = await ask('listJobs', { query: { search: 'a', state: 'queued' } })
    assert.deepEqual(
      items.map((job) => job.id),
      [id],
      'with a filter',
    )
  })
}

test('a cursor of another list, or none at all, is refused', async (t) => {
  const { send } = await stageOn(t, 'memory:')
  const made = (place: unknown) => Buffer.from(JSON.stringify(place)).toString('base64url')
  for (const cursor of ['x', made([1]), made(['a', 'b']), made(null), made([{}]), made(['a\0'])]) {
    const { status, body } = await send('listJobs', { query: { cursor } })
    assert.deepEqual([status, body.issues?.[0]?.path], [400, 'query.cursor'], cursor)
  }
  for (const cursor of [made(['a']), made([1]), made([-1, 'a']), made([1e300, 'a'])]) {
    assert.equal((await send('listDeadLetters', { query: { cursor } })).status, 400)
  }
})
