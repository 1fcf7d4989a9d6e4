import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../client/mill.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from './test-clock.ts'

test('the clock stands still until it is told to advance', async () => {
  const clock = new TestClock()
  const startMs = clock.nowMs()
  assert.equal(clock.monotonicMs(), 0)
  await clock.advance('3d')
  assert.equal(clock.nowMs() - startMs, 259_200_000)
  assert.equal(clock.monotonicMs(), 259_200_000)
})

test('timers fire in the order of their time, then of their arrival, each at its own time', async () => {
  const clock = new TestClock(0)
  const fired: string[] = []
  const note = (name: string) => () => fired.push(`${name}@${clock.nowMs()}`)
  clock.after(300, note('c'))
  clock.after(100, note('a'))
  clock.after(100, note('b'))
  clock.after(301, note('later'))
  await clock.advance(300)
  assert.deepEqual(fired, ['a@100', 'b@100', 'c@300'])
  assert.equal(clock.waiting, 1)
})

test('the wall clock shows whole milliseconds, also when a timer with a fraction fires', async () => {
  const clock = new TestClock()
  const startMs = clock.nowMs()
  await using mill = await open('memory:', { clock })
  const enqueued: Promise<unknown>[] = []
  const shown: number[] = []
  // A keeper whose random interval is no whole number has such timers, and a job may be enqueued while one fires.
  clock.after(10.24, () => {
    shown.push(clock.nowMs() - startMs)
    enqueued.push(mill.enqueue(defineJob({ type: 'greet' })))
  })
  await clock.advance(11)
  await Promise.all(enqueued)
  assert.deepEqual(shown, [10])
})

test('a timer that arms another one within the advance is followed', async () => {
  const clock = new TestClock(0)
  const fired: number[] = []
  const again = (): void => {
    fired.push(clock.nowMs())
    if (fired.length < 5) clock.after(10, again)
  }
  clock.after(10, again)
  await clock.advance(35)
  assert.deepEqual(fired, [10, 20, 30])
  assert.equal(clock.nowMs(), 35)
})

test('a promise chain started by one timer may arm the next before time goes on', async () => {
  const clock = new TestClock(0)
  const woken: number[] = []
  const sleeper = (async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      await clock.sleep(10)
      woken.push(clock.nowMs())
    }
  })()
  await clock.advance(100)
  await sleeper
  assert.deepEqual(woken, [10, 20, 30])
})

test('cancelled timers and aborted sleeps leave nothing behind', async () => {
  const clock = new TestClock()
  clock.after(10, () => assert.fail('a cancelled timer ran'))()
  const abort = new AbortController()
  const asleep = clock.sleep(10_000, abort.signal)
  assert.equal(clock.waiting, 1)
  abort.abort()
  await asleep
  assert.equal(clock.waiting, 0)
  await clock.advance('1d')
})

test('a timer of the past or of zero fires at the next advance, even of zero', async () => {
  const clock = new TestClock(0)
  let fired = 0
  clock.after(0, () => {
    fired += 1
  })
  clock.after(-5, () => {
    fired += 1
  })
  assert.equal(fired, 0)
  await clock.advance(0)
  assert.equal(fired, 2)
})
