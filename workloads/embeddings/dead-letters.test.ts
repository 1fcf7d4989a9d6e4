import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NonRetryable } from '../../src/errors.ts'
import { withRig } from './rig.ts'

const down = (): Error => new Error('service down')

describe('dead letters', () => {
  // C11 C30 C31 C35 X134
  test(
    'after three runs in total a version is a dead letter, and the log says so',
    withRig({}, async (rig) => {
      rig.answer = down
      rig.enqueue('e', 'v1')
      await rig.clock.advance('10m')
      assert.equal(rig.calls.length, 3)
      assert.equal(rig.queue.getQueueStats().dlqSize, 1)
      const job = { entryType: 'guideline', entryId: 'e', versionId: 'v1', content: 'v1', seq: 1 }
      assert.deepEqual(rig.queue.dlq(), [{ ...job, attempts: 3, lastError: 'service down' }])
      const fields = { entryType: 'guideline', entryId: 'e', attempts: 3, error: 'service down' }
      assert.deepEqual(rig.log, [{ level: 'error', text: 'Embedding failed permanently', fields }])
    }),
  )

  // X134
  test(
    'the number of runs is configurable',
    withRig({ maxRetries: 1 }, async (rig) => {
      rig.answer = down
      rig.enqueue('e', 'v1')
      await rig.clock.advance('10m')
      assert.deepEqual([rig.calls.length, rig.queue.getQueueStats().dlqSize], [1, 1])
    }),
  )

  // X144
  test(
    'an error that no retry can help is a dead letter at once',
    withRig({}, async (rig) => {
      const errors: Readonly<Record<string, unknown>> = {
        'bad request': Object.assign(new Error('bad request'), { status: 400 }),
        'too long': new NonRetryable('the text is too long'),
        'plain object': { status: 422, toString: () => 'unprocessable' },
        'rate limited': Object.assign(new Error('slow down'), { status: 429 }),
      }
      rig.answer = ({ content }) => errors[content]
      for (const name of Object.keys(errors)) rig.enqueue(name, name)
      await rig.settle()
      assert.deepEqual(
        rig.queue.dlq().map(({ content }) => content),
        ['bad request', 'too long', 'plain object'],
      )
      assert.equal(rig.queue.getQueueStats().retrying, 1)
    }),
  )

  // X141
  test(
    'whatever is thrown leaves its text, and nothing becomes an unhandled rejection',
    withRig({ maxRetries: 1 }, async (rig) => {
      const thrown: readonly unknown[] = ['just text', undefined, 42, Object.create(null)]
      rig.answer = ({ content }) => thrown[Number(content)]
      for (const index of thrown.keys()) rig.enqueue(`e${index}`, `${index}`)
      const unhandled: unknown[] = []
      const note = (reason: unknown): void => void unhandled.push(reason)
      process.on('unhandledRejection', note)
      await rig.settle()
      process.off('unhandledRejection', note)
      assert.deepEqual(
        rig.queue
          .dlq()
          .slice(0, 3)
          .map(({ lastError }) => lastError),
        ['just text', 'undefined', '42'],
      )
      assert.match(rig.queue.dlq()[3]?.lastError ?? '', /has no text/)
      assert.deepEqual(unhandled, [])
    }),
  )

  // X141
  test('a log that throws does not stop the queue', async () => {
    let lines = 0
    const throwing = (): void => {
      lines += 1
      throw new Error('disk full')
    }
    const log = { debug: throwing, info: throwing, warn: throwing, error: throwing }
    await withRig({ maxRetries: 1, log }, async (rig) => {
      rig.answer = ({ content }) => (content === 'bad' ? down() : null)
      rig.enqueue('a', 'bad')
      rig.enqueue('b', 'good')
      await rig.settle()
      assert.ok(lines > 0)
      assert.deepEqual([rig.stored('b'), rig.queue.getQueueStats().dlqSize], ['good', 1])
      // Closing will say that a dead letter is left, to a log that throws again.
    })()
  })

  // C33 X139
  test(
    'retryDlq runs the version again, as a new one at the end of the queue',
    withRig({ maxConcurrency: 1, maxRetries: 1 }, async (rig) => {
      rig.answer = ({ seq }) => (seq === 1 ? down() : null)
      rig.enqueue('e', 'v1')
      await rig.settle()
      assert.equal(rig.queue.retryDlq('guideline:unknown'), false)
      rig.enqueue('f', 'f1')
      assert.equal(rig.queue.retryDlq('guideline:e'), true)
      assert.equal(rig.queue.getQueueStats().dlqSize, 0)
      await rig.settle()
      assert.deepEqual(
        rig.calls.map(({ content, seq, attempts }) => [content, seq, attempts]),
        [
          ['v1', 1, 1],
          ['f1', 2, 1],
          ['v1', 3, 1],
        ],
      )
      assert.equal(rig.stored('e'), 'v1')
    }),
  )

  // X139
  test(
    'retryDlq does not put old content over a newer version that is on its way',
    withRig({ hold: true, maxRetries: 1 }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      rig.call(0).fail(down())
      await rig.settle()
      rig.enqueue('e', 'v2')
      await rig.settle()
      assert.equal(rig.queue.retryDlq('guideline:e'), false)
      assert.equal(rig.queue.getQueueStats().dlqSize, 1)
      rig.call(1).succeed()
      await rig.settle()
      assert.deepEqual([rig.queue.dlq(), rig.contents, rig.stored('e')], [[], ['v1', 'v2'], 'v2'])
    }),
  )

  // X139
  test(
    'the success of a newer version takes the dead letter of its entry away, and of no other',
    withRig({ maxRetries: 1 }, async (rig) => {
      rig.answer = ({ content }) => (content === 'v1' ? down() : null)
      rig.enqueue('e', 'v1')
      rig.enqueue('f', 'v1')
      await rig.settle()
      assert.equal(rig.queue.getQueueStats().dlqSize, 2)
      rig.enqueue('e', 'v2')
      await rig.settle()
      assert.deepEqual(
        rig.queue.dlq().map(({ entryId }) => entryId),
        ['f'],
      )
    }),
  )

  // X139
  test(
    'discardDlq drops it',
    withRig({ maxRetries: 1 }, async (rig) => {
      rig.answer = down
      rig.enqueue('e', 'v1')
      await rig.settle()
      assert.deepEqual([rig.queue.discardDlq('guideline:e'), rig.queue.discardDlq('guideline:e')], [true, false])
      assert.deepEqual([rig.queue.dlq(), rig.queue.retryDlq('guideline:e')], [[], false])
    }),
  )

  // X133
  test(
    'the dead letters are capped: the oldest leave and are counted',
    withRig({ maxRetries: 1, dlqMax: 2 }, async (rig) => {
      rig.answer = down
      for (const entry of ['a', 'b', 'c', 'd']) rig.enqueue(entry, entry)
      await rig.settle()
      assert.deepEqual(
        rig.queue.dlq().map(({ entryId }) => entryId),
        ['c', 'd'],
      )
      const { dlqSize, dlqDropped } = rig.queue.getQueueStats()
      assert.deepEqual([dlqSize, dlqDropped], [2, 2])
    }),
  )

  // X133
  test(
    'of an entry that died twice the newer version is kept',
    withRig({ maxRetries: 1 }, async (rig) => {
      rig.answer = down
      rig.enqueue('e', 'v1')
      await rig.settle()
      rig.enqueue('e', 'v2')
      await rig.settle()
      assert.deepEqual(
        rig.queue.dlq().map(({ versionId }) => versionId),
        ['v2'],
      )
      assert.equal(rig.queue.getQueueStats().dlqDropped, 0)
    }),
  )

  // X142
  test(
    'cancel also drops the dead letter of a deleted entry',
    withRig({ maxRetries: 1 }, async (rig) => {
      rig.answer = down
      rig.enqueue('e', 'v1')
      await rig.settle()
      assert.equal(rig.queue.cancel('guideline', 'e'), true)
      assert.equal(rig.queue.getQueueStats().dlqSize, 0)
    }),
  )
})
