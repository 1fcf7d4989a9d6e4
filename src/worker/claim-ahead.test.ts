import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../testing/test-clock.ts'
import { ClaimAhead } from './claim-ahead.ts'

function staged(concurrency = 50) {
  const clock = new TestClock()
  const ahead = new ClaimAhead(clock, concurrency)
  const finish = (count: number, durationMs: number): void => {
    for (let left = count; left > 0; left -= 1) ahead.finished(durationMs, clock.monotonicMs())
  }
  ahead.claimed()
  return { clock, ahead, finish }
}

test('nothing is claimed ahead before anything was seen', () => {
  assert.equal(staged().ahead.size, 0)
})

test('with short jobs as many are claimed ahead as finish within 20 ms, up to 256', async () => {
  const { clock, ahead, finish } = staged()
  finish(50, 1)
  assert.equal(ahead.size, 50)
  ahead.claimed()
  ahead.claimed()
  assert.equal(ahead.size, 50)
  await clock.advance(20)
  finish(30, 1)
  assert.equal(ahead.size, 50)
  finish(70, 1)
  assert.equal(ahead.size, 100)
  finish(900, 1)
  assert.equal(ahead.size, 256)
})

test('where the next claim is asked for while the last is run, there may be four times as many', () => {
  const clock = new TestClock()
  const ahead = new ClaimAhead(clock, 50, true)
  ahead.claimed()
  for (let left = 5_000; left > 0; left -= 1) ahead.finished(0.1, clock.monotonicMs())
  assert.equal(ahead.size, 1_024)
})

test('with long jobs nothing is claimed ahead, however many end at once', () => {
  const { ahead, finish } = staged()
  finish(50, 10_000)
  assert.equal(ahead.size, 0)
})

test('one long job among short ones stops it for a while', () => {
  const { ahead, finish } = staged()
  finish(50, 1)
  finish(1, 10_000)
  assert.equal(ahead.size, 0)
  finish(100, 1)
  assert.ok(ahead.size > 0)
})

test('no more are claimed ahead than the slots can start within 20 ms', () => {
  const { ahead, finish } = staged(2)
  finish(200, 10)
  assert.equal(ahead.size, 4)
})

test('what was seen long ago does not count', async () => {
  const { clock, ahead, finish } = staged()
  finish(50, 1)
  await clock.advance(251)
  assert.equal(ahead.size, 0)
  ahead.claimed()
  assert.equal(ahead.size, 0)
})

test('while it waits for jobs, what it can finish is not guessed lower', async () => {
  const { clock, ahead, finish } = staged()
  for (let batches = 3; batches > 0; batches -= 1) {
    await clock.advance(30)
    ahead.resumed(clock.monotonicMs())
    finish(50, 1)
  }
  assert.equal(ahead.size, 150, 'three batches that took no time, 30 ms apart')
  await clock.advance(251)
  ahead.resumed(clock.monotonicMs())
  assert.equal(ahead.size, 0, 'after a pause it begins anew')
})

test('a job that waited too long halves the guess, which then recovers', () => {
  const { ahead, finish } = staged()
  const round = (waitedMs: number): number => {
    finish(400, 1)
    ahead.waited(waitedMs)
    ahead.claimed()
    return ahead.size
  }
  assert.deepEqual([round(5), round(30), round(30), round(5), round(5)], [256, 128, 64, 96, 128])
})

test('a job that was given back stops it for a second', async () => {
  const { clock, ahead, finish } = staged()
  finish(50, 1)
  ahead.penalize()
  assert.equal(ahead.size, 0)
  await clock.advance(1_000)
  ahead.claimed()
  finish(50, 1)
  assert.equal(ahead.size, 50)
})
