import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Rig, withRig } from './rig.ts'

const entries = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `e${index}`)

describe('how many run', () => {
  // C07 C08 C20 C24 C34
  test(
    'three of ten run by default, and the others are pending',
    withRig({ hold: true }, async (rig) => {
      for (const entry of entries(10)) rig.enqueue(entry, entry)
      await rig.settle()
      assert.equal(rig.running, 3)
      assert.deepEqual(rig.queue.getQueueStats(), {
        pending: 7,
        inFlight: 3,
        dlqSize: 0,
        uniqueEntries: 7,
        retrying: 0,
        dlqDropped: 0,
      })
    }),
  )

  // C09
  test(
    'the number is configurable',
    withRig({ hold: true, maxConcurrency: 1 }, async (rig) => {
      for (const entry of entries(4)) rig.enqueue(entry, entry)
      await rig.settle()
      assert.equal(rig.running, 1)
      assert.throws(() => new Rig({ maxConcurrency: 0 }), { code: 'ERR_OPTION_INVALID' })
    }),
  )

  // C20 C21 C25
  test(
    'the fourth starts when one ends, and never more than three run',
    withRig({ hold: true }, async (rig) => {
      for (const entry of entries(8)) rig.enqueue(entry, entry)
      await rig.settle()
      assert.equal(rig.calls.length, 3)
      rig.call(1).succeed()
      await rig.settle()
      assert.equal(rig.calls.length, 4)
      rig.call(0).fail(new Error('boom'))
      await rig.settle()
      assert.equal(rig.calls.length, 5)
      for (let index = 2; index < 8; index += 1) {
        rig.call(index).succeed()
        await rig.settle()
      }
      assert.equal(rig.runningMax, 3)
      assert.equal(rig.queue.getQueueStats().inFlight, 0)
    }),
  )
})

describe('what a run does', () => {
  // C26 C35
  test(
    'success stores the vector with the version',
    withRig({}, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      const stored = rig.embeddings.get('guideline', 'e')
      assert.deepEqual(stored, { entryType: 'guideline', entryId: 'e', versionId: 'v1', seq: 1, vector: [2] })
      assert.equal(rig.queue.find('guideline', 'e'), null)
    }),
  )

  // C22 X142
  test(
    'an entry whose pending version vanished is skipped and the next one runs',
    withRig({ maxConcurrency: 1, hold: true }, async (rig) => {
      for (const entry of ['busy', 'gone', 'next']) rig.enqueue(entry, entry)
      await rig.settle()
      assert.equal(rig.queue.cancel('guideline', 'gone'), true)
      rig.call(0).succeed()
      await rig.settle()
      assert.deepEqual(rig.contents, ['busy', 'next'])
    }),
  )

  // C23 X137
  test(
    'a version superseded between its claim and its start is dropped, not embedded',
    withRig({ maxConcurrency: 1 }, async (rig) => {
      // The idle worker's waiting claim takes the first at once; its handler starts only after this turn.
      rig.enqueue('e', 'v1')
      assert.equal(rig.queue.getQueueStats().inFlight, 1)
      rig.enqueue('e', 'v2')
      await rig.settle()
      assert.deepEqual(rig.contents, ['v2'])
      assert.equal(rig.stored('e'), 'v2')
    }),
  )

  // X131
  test(
    'two versions of an entry never run at once: the newer waits',
    withRig({ hold: true }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      rig.enqueue('e', 'v2')
      await rig.settle()
      assert.deepEqual(rig.contents, ['v1'])
      assert.deepEqual([rig.queue.getQueueStats().pending, rig.queue.getQueueStats().inFlight], [1, 1])
      rig.call(0).succeed()
      await rig.settle()
      assert.deepEqual(rig.contents, ['v1', 'v2'])
      rig.call(1).succeed()
      await rig.settle()
      assert.equal(rig.stored('e'), 'v2')
    }),
  )

  // X131
  test('a write that hung past its timeout cannot replace the newer vector', async () => {
    const writes: (() => void)[] = []
    const slow = new Rig({
      timeoutMs: 1_000,
      maxRetries: 1,
      store: {
        save(embedding) {
          if (embedding.versionId !== 'v1') return slow.embeddings.save(embedding)
          return new Promise((resolve) => writes.push(() => resolve(slow.embeddings.save(embedding))))
        },
      },
    })
    slow.enqueue('e', 'v1')
    await slow.clock.advance('1s')
    slow.enqueue('e', 'v2')
    await slow.settle()
    for (const write of writes) write()
    await slow.settle()
    assert.equal(writes.length, 1)
    assert.equal(slow.stored('e'), 'v2')
    await slow.close()
  })

  // X138
  test(
    'three hung calls do not stop the queue, and what they answer late is not stored',
    withRig({ hold: true, maxRetries: 1 }, async (rig) => {
      for (const entry of entries(4)) rig.enqueue(entry, entry)
      await rig.clock.advance(59_999)
      assert.equal(rig.calls.length, 3)
      await rig.clock.advance(1)
      assert.equal(rig.calls.length, 4)
      assert.deepEqual(
        rig.calls.map(({ signal }) => signal.aborted),
        [true, true, true, false],
      )
      assert.equal(rig.queue.getQueueStats().dlqSize, 3)
      for (const call of rig.calls) call.succeed()
      await rig.settle()
      assert.deepEqual(
        entries(4).map((entry) => rig.stored(entry)),
        [null, null, null, 'e3'],
      )
    }),
  )

  // X142
  test(
    'cancel drops what is pending, and a running embedding of the entry writes nothing',
    withRig({ hold: true, maxConcurrency: 1 }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      rig.enqueue('e', 'v2')
      assert.equal(rig.queue.cancel('guideline', 'e'), true)
      await rig.settle()
      assert.equal(rig.call(0).signal.aborted, true)
      rig.call(0).succeed()
      await rig.settle()
      assert.deepEqual([rig.contents, rig.stored('e')], [['v1'], null])
      assert.equal(rig.queue.cancel('guideline', 'e'), false)
      rig.enqueue('e', 'v3')
      await rig.settle()
      rig.call(1).succeed()
      await rig.settle()
      assert.equal(rig.stored('e'), 'v3')
    }),
  )

  test(
    'an embedder that returns no vector has failed',
    withRig({ maxRetries: 1, embed: () => [] }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      assert.match(rig.queue.dlq()[0]?.lastError ?? '', /returned no vector/)
      assert.equal(rig.stored('e'), null)
    }),
  )
})
