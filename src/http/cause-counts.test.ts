import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Causes } from '../desk/groups.ts'
import { TestClock } from '../testing/test-clock.ts'
import { CauseCounts } from './cause-counts.ts'

function stage(tookMs: number) {
  const clock = new TestClock()
  const causes = new CauseCounts(clock)
  const store = { counted: 0, tookMs }
  const count = async (): Promise<Causes> => {
    store.counted += 1
    const seen = store.counted
    await clock.sleep(store.tookMs)
    return { groups: [], seen, complete: true, selection: {} }
  }
  const read = async (type?: string) => {
    const answer = causes.read(type, count)
    await clock.advance(store.tookMs)
    return (await answer).value.seen
  }
  return { clock, causes, store, read }
}

test('letters that are counted quickly are counted for every reader', async () => {
  const { store, read } = stage(10)
  assert.deepEqual([await read(), await read(), await read()], [1, 2, 3])
  store.tookMs = 1_000
  assert.equal(await read(), 4)
  assert.equal(await read(), 4, 'until it takes long')
})

test('where counting takes long, readers get the last counts, and a tenth of the time is spent on new ones', async () => {
  const { clock, store, read } = stage(1_000)
  assert.equal(await read(), 1)
  await clock.advance(7_000)
  assert.deepEqual([await read(), store.counted], [1, 1])
  await clock.advance(2_000)
  assert.deepEqual([await read(), store.counted], [1, 2], 'the reader does not wait for the count that it starts')
  assert.equal(await read(), 2)
})

test('types are counted apart, and after an act the next reader counts', async () => {
  const { causes, read } = stage(1_000)
  assert.deepEqual([await read(), await read('mail'), await read(), await read('mail')], [1, 2, 1, 2])
  causes.forget()
  assert.deepEqual([await read(), await read('mail')], [3, 4])
})

test('what callers ask for does not grow without end', async () => {
  const { read } = stage(1_000)
  assert.equal(await read('first'), 1)
  for (let n = 0; n < 100; n += 1) await read(`none-${n}`)
  assert.equal(await read('first'), 102, 'the oldest of 101 was dropped')
})
