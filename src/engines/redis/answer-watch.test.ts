import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { AnswerWatch } from './answer-watch.ts'

const ANSWER_MS = 60

test('a call without an answer is late after its time, and one that was sent later is not', async (t) => {
  const lateness: boolean[][] = []
  const watch = new AnswerWatch(ANSWER_MS, () => lateness.push([first.isLate, second.isLate]))
  t.after(() => watch.close())
  const first = watch.begin()
  await sleep(ANSWER_MS / 2)
  const second = watch.begin()
  while (lateness.length === 0) await sleep(1)
  assert.ok(performance.now() - first.sentMs >= ANSWER_MS)
  assert.equal(first.isLate, true)
  while (!second.isLate) await sleep(1)
  assert.ok(performance.now() - second.sentMs >= ANSWER_MS)
  assert.ok(lateness.length <= 2, 'each call is told once')
})

test('an answered call is never late, and the timer goes on for the next', async (t) => {
  let told = 0
  const watch = new AnswerWatch(ANSWER_MS, () => {
    told += 1
  })
  t.after(() => watch.close())
  const answered = watch.begin()
  watch.end(answered)
  await sleep(2 * ANSWER_MS)
  assert.equal(told, 0)
  const forgotten = watch.begin()
  while (!forgotten.isLate) await sleep(1)
  assert.equal(told, 1)
  assert.equal(answered.isLate, false)
})

test('nothing is late once it is closed', async () => {
  const watch = new AnswerWatch(ANSWER_MS, () => assert.fail('closed'))
  const call = watch.begin()
  watch.close()
  await sleep(2 * ANSWER_MS)
  assert.equal(call.isLate, false)
})
