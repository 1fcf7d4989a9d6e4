import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { TestClock } from '../testing/test-clock.ts'
import { ClockSteps, Moment, sharedWait, systemClock, watchEvery } from './clock.ts'

const TIMER_MS_MAX = 2 ** 31 - 1
const DAY_MS = 86_400_000

/** Replaces setTimeout by one that fires only when told and remembers what it was asked for. */
function fakeTimers(t: TestContext): { readonly askedMs: number[]; fire(): void; readonly armed: number } {
  const askedMs: number[] = []
  const waiting = new Map<object, () => void>()
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
    const handle = { unref: () => {} }
    askedMs.push(ms)
    waiting.set(handle, run)
    return handle
  })
  t.mock.method(globalThis, 'clearTimeout', (handle: object) => void waiting.delete(handle))
  return {
    askedMs,
    fire: () => {
      const [first] = waiting
      assert.ok(first, 'no timer is armed')
      waiting.delete(first[0])
      first[1]()
    },
    get armed() {
      return waiting.size
    },
  }
}

test('long waits end together and never later than asked for; short ones are left alone', () => {
  const at = (monotonicMs: number, ms: number) => monotonicMs + sharedWait({ monotonicMs: () => monotonicMs }, ms)
  assert.deepEqual([at(1_200, 5_000), at(4_300, 5_000), at(1_200, 10_000)], [5_000, 5_000, 10_000])
  assert.equal(at(1_200, 4_999), 6_199)
  // A timer that fires a moment early is not asked for the rest.
  assert.equal(at(4_999.2, 5_000), 10_000)
  assert.equal(at(5_000, 5_000), 10_000)
})

test('long looks at something outside end together too, and stop when told', (t) => {
  const timers = fakeTimers(t)
  let nowMs = 1_000
  t.mock.method(performance, 'now', () => nowMs)
  let looks = 0
  const stop = watchEvery(10_000, () => {
    looks += 1
  })
  nowMs = 10_003
  timers.fire()
  assert.deepEqual([looks, timers.askedMs], [1, [9_000, 9_997]])
  stop()
  assert.equal(timers.armed, 0)
})

test('what was due before now is due at once, without a warning of Node', (t) => {
  const timers = fakeTimers(t)
  systemClock.after(-1.2, () => {})
  assert.deepEqual(timers.askedMs, [0])
})

test('a delay beyond 24.8 days is waited for in pieces that setTimeout can hold', (t) => {
  const timers = fakeTimers(t)
  let runs = 0
  systemClock.after(60 * DAY_MS, () => {
    runs += 1
  })
  // 60 days are three pieces: one timer at a time, none above the limit at which setTimeout would fire at once.
  for (let piece = 1; piece <= 3; piece += 1) {
    assert.equal(timers.askedMs.length, piece)
    assert.equal(timers.armed, 1)
    assert.equal(runs, 0)
    timers.fire()
  }
  assert.equal(runs, 1)
  assert.equal(timers.armed, 0)
  assert.ok(timers.askedMs.every((ms) => ms > 0 && ms <= TIMER_MS_MAX))
  assert.equal(
    timers.askedMs.reduce((sum, ms) => sum + ms, 0),
    60 * DAY_MS,
  )
})

test('a delay of exactly the timer limit is one piece', (t) => {
  const timers = fakeTimers(t)
  let runs = 0
  systemClock.after(TIMER_MS_MAX, () => {
    runs += 1
  })
  timers.fire()
  assert.equal(runs, 1)
  assert.deepEqual(timers.askedMs, [TIMER_MS_MAX])
})

test('cancelling a long delay stops the piece that is running now', (t) => {
  const timers = fakeTimers(t)
  const cancel = systemClock.after(60 * DAY_MS, () => assert.fail('a cancelled timer ran'))
  timers.fire()
  cancel()
  assert.equal(timers.armed, 0)
})

test('on real timers a delay of 30 days does not fire at once', async () => {
  let fired = false
  const cancel = systemClock.after(30 * DAY_MS, () => {
    fired = true
  })
  await systemClock.sleep(20)
  cancel()
  assert.equal(fired, false)
})

test('sleep ends when the time is over, and at once when the signal aborts', async () => {
  const startedMs = systemClock.monotonicMs()
  await systemClock.sleep(15)
  assert.ok(systemClock.monotonicMs() - startedMs >= 14)

  const abort = new AbortController()
  const asleep = systemClock.sleep(30 * DAY_MS, abort.signal)
  abort.abort()
  await asleep
  await systemClock.sleep(30 * DAY_MS, abort.signal)
})

test('a sleep that ended leaves no listener on its signal', async (t) => {
  const { signal } = new AbortController()
  const added = t.mock.method(signal, 'addEventListener')
  const removed = t.mock.method(signal, 'removeEventListener')
  await systemClock.sleep(1, signal)
  assert.equal(added.mock.callCount(), 1)
  assert.equal(removed.mock.callCount(), 1)
})

test('wall-clock time is the hour, monotonic time never goes back', () => {
  assert.ok(Math.abs(systemClock.nowMs() - Date.now()) < 60_000)
  const first = systemClock.monotonicMs()
  assert.ok(systemClock.monotonicMs() >= first)
})

test('a step is told once, with its size and direction', async () => {
  const clock = new TestClock()
  const steps = new ClockSteps(clock)
  await clock.advance('1h')
  assert.equal(steps.take(), 0)
  clock.step(90_000)
  assert.equal(steps.take(), 90_000)
  assert.equal(steps.take(), 0)
  clock.step(-3_600_000)
  await clock.advance('1m')
  assert.equal(steps.take(), -3_600_000)
})

test('small corrections are no step, and many of them in one direction are', () => {
  const clock = new TestClock()
  const steps = new ClockSteps(clock)
  clock.step(600)
  assert.equal(steps.take(), 0)
  clock.step(600)
  assert.equal(steps.take(), 1_200)
})

test('the test clock keeps timers and the monotonic clock when it is set', async () => {
  const clock = new TestClock(0)
  let fired = 0
  clock.after(1_000, () => {
    fired += 1
  })
  clock.step(-60_000)
  await clock.advance(999)
  assert.deepEqual([fired, clock.nowMs(), clock.monotonicMs()], [0, -59_001, 999])
  await clock.advance(1)
  assert.equal(fired, 1)
})

test('a moment is read once, and anew in the next one', async () => {
  let readings = 0
  const moment = new Moment(() => {
    readings += 1
    return readings * 1_000
  })
  assert.equal(readings, 0, 'nobody has asked')
  assert.deepEqual([moment.ms, moment.ms, moment.ms], [1_000, 1_000, 1_000])
  await Promise.resolve()
  assert.equal(readings, 1)
  assert.deepEqual([moment.ms, moment.ms], [2_000, 2_000])
  const alreadyQueued: number[] = []
  await Promise.resolve()
  const first = Promise.resolve().then(() => alreadyQueued.push(moment.ms))
  const second = Promise.resolve().then(() => alreadyQueued.push(moment.ms))
  await Promise.all([first, second])
  assert.deepEqual(alreadyQueued, [3_000, 3_000])
})
