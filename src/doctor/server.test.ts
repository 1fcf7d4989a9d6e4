import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../testing/test-clock.ts'
import { judgeLatency, measureLatency } from './server.ts'

test('one slow answer is not counted, slow ones are', () => {
  assert.equal(judgeLatency([0.2, 0.3, 80]).severity, 'ok')
  const slow = judgeLatency([40, 41, 0.1], ' See SLOWLOG.')
  assert.equal(slow.severity, 'warning')
  assert.match(slow.advice ?? '', /nearer to the server\. See SLOWLOG\.$/)
  assert.equal(
    slow.detail,
    'a round trip takes 40.0 ms (41.0 ms at most of 3): every enqueue, claim and result waits for one',
  )
})

test('round trips are measured one after the other', async () => {
  const clock = new TestClock()
  const took = await measureLatency(clock, () => clock.advance(12))
  assert.deepEqual(took, Array(7).fill(12))
})
