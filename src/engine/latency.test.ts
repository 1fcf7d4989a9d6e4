import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../testing/test-clock.ts'
import { judgeLatency, measureLatency } from './latency.ts'

const words = { cost: 'every claim waits for one', advice: 'Move nearer.' }

test('one slow answer is not counted, slow ones are', () => {
  assert.equal(judgeLatency([0.2, 0.3, 80], words).severity, 'ok')
  const slow = judgeLatency([40, 41, 0.1], words)
  assert.deepEqual([slow.severity, slow.advice], ['warning', 'Move nearer.'])
  assert.equal(slow.detail, 'a round trip takes 40.0 ms (41.0 ms at most of 3): every claim waits for one')
})

test('round trips are measured one after the other', async () => {
  const clock = new TestClock()
  const took = await measureLatency(clock, () => clock.advance(12))
  assert.deepEqual(took, Array(7).fill(12))
})
