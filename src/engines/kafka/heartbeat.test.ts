import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../../testing/test-clock.ts'
import { Heartbeat } from './heartbeat.ts'

type Answer = 'member' | 'rebalancing' | 'gone' | 'unknown'

/** A pulse whose broker answers what it is told to. */
function scene(first: Answer) {
  const clock = new TestClock()
  const told = { answer: first, sure: 0, beats: 0, isProven: true, proofs: 0 }
  let hold: Promise<void> | null = null
  const heartbeat = new Heartbeat({
    clock,
    sessionMs: 3_000,
    heartbeatMs: 1_000,
    rebalanceMs: 6_000,
    isProven: async () => {
      told.proofs += 1
      return told.isProven
    },
    beat: async () => {
      told.beats += 1
      const { answer } = told
      await hold
      return answer
    },
    onSure: () => {
      told.sure += 1
    },
  })
  const holdAnswers = (until: Promise<void> | null): void => {
    hold = until
  }
  return { clock, told, heartbeat, holdAnswers }
}

test('it is sure for a session after a beat that was answered, and not before the first', async () => {
  const { clock, told, heartbeat } = scene('member')
  assert.equal(heartbeat.isFenced, true)
  heartbeat.start()
  await clock.advance(0)
  assert.deepEqual([heartbeat.isFenced, told.sure], [false, 1])
  told.answer = 'unknown'
  await clock.advance(2_999)
  assert.equal(heartbeat.isFenced, false)
  await clock.advance(1)
  assert.equal(heartbeat.isFenced, true)
  told.answer = 'member'
  await clock.advance(1_000)
  assert.deepEqual([heartbeat.isFenced, told.sure], [false, 2])
  heartbeat.stop()
})

test('a session counts from when the beat was sent: an answer that comes late makes nothing sure', async () => {
  const { clock, heartbeat, holdAnswers } = scene('member')
  const { promise, resolve } = Promise.withResolvers<void>()
  holdAnswers(promise)
  heartbeat.start()
  await clock.advance(0)
  holdAnswers(new Promise(() => {}))
  await clock.advance(3_000)
  resolve()
  await clock.advance(0)
  assert.equal(heartbeat.isFenced, true)
  heartbeat.stop()
})

test('a member that beats and does not join is sure for as long as the group waits for it, and no longer', async () => {
  const { clock, told, heartbeat } = scene('member')
  heartbeat.start()
  await clock.advance(0)
  told.answer = 'rebalancing'
  await clock.advance(5_999)
  assert.equal(heartbeat.isFenced, false)
  await clock.advance(1)
  assert.equal(heartbeat.isFenced, true)
  // It joins, and the group is shared out once more before the next beat: the group waits for it anew.
  heartbeat.joining()
  await clock.advance(500)
  heartbeat.start()
  await clock.advance(5_499)
  assert.equal(heartbeat.isFenced, false)
  await clock.advance(1)
  assert.equal(heartbeat.isFenced, true)
  heartbeat.stop()
})

test('once it was not sure, beats that are answered make it sure only with a proof', async () => {
  const { clock, told, heartbeat } = scene('member')
  heartbeat.start()
  await clock.advance(0)
  assert.equal(told.proofs, 1)
  told.answer = 'unknown'
  await clock.advance(3_000)
  assert.equal(heartbeat.isFenced, true)
  told.answer = 'member'
  told.isProven = false
  await clock.advance(5_000)
  assert.deepEqual([heartbeat.isFenced, told.sure], [true, 1])
  told.isProven = true
  await clock.advance(1_000)
  assert.deepEqual([heartbeat.isFenced, told.sure], [false, 2])
  const { proofs } = told
  await clock.advance(5_000)
  assert.deepEqual([heartbeat.isFenced, told.proofs], [false, proofs])
  heartbeat.stop()
})

test('a waiting caller learns of success, refusal and silence', async () => {
  for (const [answer, atMs] of [
    ['member', 1_000],
    ['gone', 1_000],
    ['unknown', 5_000],
  ] as const) {
    const { clock, told, heartbeat } = scene('unknown')
    heartbeat.start()
    await clock.advance(0)
    let isKnown = false
    void heartbeat.known(5_000).then(() => {
      isKnown = true
    })
    told.answer = answer
    await clock.advance(atMs - 1)
    assert.equal(isKnown, false, answer)
    await clock.advance(1)
    assert.equal(isKnown, true, answer)
    assert.equal(heartbeat.isFenced, answer !== 'member', answer)
    heartbeat.stop()
  }
})

test('after it is stopped it beats no more, and nobody waits', async () => {
  const { clock, told, heartbeat } = scene('unknown')
  heartbeat.start()
  const waiting = heartbeat.known(60_000)
  heartbeat.stop()
  await waiting
  await heartbeat.known(60_000)
  const { beats } = told
  await clock.advance(10_000)
  assert.equal(told.beats, beats)
})
