import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../testing/clock.ts'
import { ClockSteps } from './steps.ts'

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
