import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { withRig } from './rig.ts'

const down = (): Error => new Error('service down')

describe('retries', () => {
  // C28 X130 X143
  test(
    'the waits are 2, 4, 8, 16 and then 30 seconds, to the millisecond',
    withRig({ maxRetries: 8 }, async (rig) => {
      rig.answer = down
      rig.enqueue('e', 'v1')
      await rig.clock.advance('5m')
      const starts = rig.calls.map(({ atMs }) => atMs)
      const waits = starts.slice(1).map((atMs, index) => atMs - (starts[index] ?? 0))
      assert.deepEqual(waits, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
    }),
  )

  // X143
  test(
    'jitter spreads the waits when asked for',
    withRig({ jitter: { add: '1s' }, random: () => 0.25 }, async (rig) => {
      rig.answer = down
      rig.enqueue('e', 'v1')
      await rig.clock.advance('1m')
      assert.deepEqual(
        rig.calls.map(({ atMs }) => atMs),
        [0, 2_250, 6_500],
      )
    }),
  )

  // C25 C27 C29 C35 X130
  test(
    'a failed version is really run again, and stored when that succeeds',
    withRig({}, async (rig) => {
      rig.answer = ({ content, attempts }) => (content === 'v1' && attempts === 1 ? down() : null)
      rig.enqueue('e', 'v1')
      rig.enqueue('f', 'other')
      await rig.settle()
      assert.equal(rig.stored('f'), 'other', 'a failure stalled the queue')
      const waiting = rig.queue.find('guideline', 'e')
      assert.deepEqual([waiting?.attempts, waiting?.lastError], [1, 'service down'])
      await rig.clock.advance('2s')
      assert.deepEqual(
        rig.calls.filter(({ key }) => key === 'guideline:e').map(({ attempts }) => attempts),
        [1, 2],
      )
      assert.equal(rig.stored('e'), 'v1')
    }),
  )

  // X130
  test(
    'a retry comes after what was pending by then',
    withRig({ maxConcurrency: 1, hold: true }, async (rig) => {
      rig.enqueue('a', 'a1')
      await rig.settle()
      rig.call(0).fail(down())
      rig.enqueue('b', 'b1')
      await rig.clock.advance('1s')
      rig.enqueue('c', 'c1')
      await rig.clock.advance('2s')
      rig.enqueue('d', 'd1')
      for (const index of [1, 2, 3, 4]) {
        rig.call(index).succeed()
        await rig.settle()
      }
      assert.deepEqual(rig.contents, ['a1', 'b1', 'c1', 'a1', 'd1'])
    }),
  )

  // X135
  test(
    'a version in backoff is counted as retrying, not as pending, until its time has come',
    withRig({ hold: true, maxConcurrency: 1 }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      rig.call(0).fail(down())
      await rig.settle()
      const { pending, inFlight, retrying } = rig.queue.getQueueStats()
      assert.deepEqual([pending, inFlight, retrying], [0, 0, 1])
      rig.enqueue('busy', 'busy')
      await rig.clock.advance('2s')
      const after = rig.queue.getQueueStats()
      assert.deepEqual([after.pending, after.inFlight, after.retrying], [1, 1, 0])
    }),
  )

  // C32
  test(
    'a failed version is not retried once a newer one arrived during its backoff',
    withRig({}, async (rig) => {
      rig.answer = ({ content }) => (content === 'v1' ? down() : null)
      rig.enqueue('e', 'v1')
      await rig.clock.advance('1s')
      rig.enqueue('e', 'v2')
      await rig.settle()
      assert.equal(rig.stored('e'), 'v2', 'the newer version waited for the backoff of the older')
      await rig.clock.advance('1m')
      assert.deepEqual(rig.contents, ['v1', 'v2'])
      assert.equal(rig.stored('e'), 'v2')
    }),
  )

  // C32
  test(
    'nor when the newer one arrived while it ran, and it is no dead letter then',
    withRig({ hold: true, maxRetries: 1 }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      rig.enqueue('e', 'v2')
      rig.call(0).fail(down())
      await rig.settle()
      assert.deepEqual(rig.contents, ['v1', 'v2'])
      assert.deepEqual([rig.queue.dlq(), rig.log], [[], []])
    }),
  )
})
