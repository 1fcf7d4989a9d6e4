import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EmbeddingInput } from './index.ts'
import { withRig } from './rig.ts'

describe('what may be enqueued', () => {
  // C01 C27
  test(
    'a job has the seven fields, the last only after a failure',
    withRig({ hold: true }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      const fresh = rig.queue.find('guideline', 'e')
      const fields = { entryType: 'guideline', entryId: 'e', versionId: 'v1', content: 'v1', seq: 1, attempts: 1 }
      assert.deepEqual(fresh, fields)
      rig.call(0).fail(new Error('no route'))
      await rig.settle()
      assert.deepEqual(rig.queue.find('guideline', 'e'), { ...fields, lastError: 'no route' })
    }),
  )

  // C02
  test(
    'an entry type that is not one of the three is refused and nothing is queued',
    withRig({}, async (rig) => {
      const good: EmbeddingInput = { entryType: 'tool', entryId: 'e', versionId: 'v', content: 'c' }
      const bad: readonly object[] = [
        { entryType: 'note' },
        { entryType: undefined },
        { entryType: 'toString' },
        { entryId: '' },
        { entryId: 'line\nfeed' },
        { entryId: 'x'.repeat(600) },
        { versionId: 7 },
        { content: null },
        // X132: the original default of 0 could only ever be discarded, so it is refused aloud.
        { seq: 0 },
        { seq: 1.5 },
      ]
      for (const fields of bad) {
        assert.throws(
          () => rig.queue.enqueue({ ...good, ...fields }),
          { code: 'ERR_OPTION_INVALID' },
          JSON.stringify(fields),
        )
      }
      await rig.settle()
      assert.deepEqual(rig.contents, [])
      for (const entryType of ['guideline', 'knowledge', 'tool'] as const) rig.queue.enqueue({ ...good, entryType })
      await rig.settle()
      assert.equal(rig.calls.length, 3)
    }),
  )

  // C03
  test(
    'two types with the same id do not collide',
    withRig({ hold: true }, async (rig) => {
      rig.enqueue('7', 'g', undefined, 'guideline')
      rig.enqueue('7', 't', undefined, 'tool')
      await rig.settle()
      assert.deepEqual(
        rig.calls.map(({ key }) => key),
        ['guideline:7', 'tool:7'],
      )
      for (const call of rig.calls) call.succeed()
      await rig.settle()
      assert.deepEqual([rig.stored('7', 'guideline'), rig.stored('7', 'tool')], ['g', 't'])
    }),
  )
})

describe('the order of versions', () => {
  // C04 X132
  test(
    'each enqueue gets a larger seq than the one before, from 1, and above any that was given',
    withRig({}, async (rig) => {
      rig.enqueue('a', 'a1')
      rig.enqueue('b', 'b1')
      rig.enqueue('c', 'c1', 10)
      rig.enqueue('x', 'x1', 3)
      rig.enqueue('d', 'd1')
      await rig.settle()
      assert.deepEqual(
        rig.calls.map(({ seq }) => seq),
        [1, 2, 10, 3, 11],
      )
    }),
  )

  // C10 C13 C14 C35
  test(
    'a version that is not newer than the newest seen is discarded silently',
    withRig({ maxConcurrency: 1, hold: true }, async (rig) => {
      rig.enqueue('e', 'two', 2)
      rig.enqueue('e', 'one', 1)
      rig.enqueue('e', 'two again', 2)
      await rig.settle()
      rig.enqueue('e', 'late', 1)
      rig.call(0).succeed()
      await rig.settle()
      assert.deepEqual(rig.contents, ['two'])
      assert.deepEqual(rig.log, [])
      assert.equal(rig.stored('e'), 'two')
    }),
  )

  // C10 C14
  test(
    'a version that skips numbers is the newest from then on',
    withRig({ maxConcurrency: 1, hold: true }, async (rig) => {
      rig.enqueue('busy', 'busy')
      rig.enqueue('e', 'five', 5)
      rig.enqueue('e', 'three', 3)
      rig.enqueue('e', 'nine', 9)
      rig.enqueue('e', 'seven', 7)
      await rig.settle()
      rig.call(0).succeed()
      await rig.settle()
      assert.deepEqual(rig.contents, ['busy', 'nine'])
    }),
  )

  // C05 X136 C35
  test(
    'of five versions one is pending, and the pending are as many as their entries',
    withRig({ maxConcurrency: 1, hold: true }, async (rig) => {
      rig.enqueue('busy', 'busy')
      for (const version of ['1', '2', '3', '4', '5']) rig.enqueue('e', version)
      assert.deepEqual([rig.queue.getQueueStats().pending, rig.queue.getQueueStats().uniqueEntries], [1, 1])
      for (const entry of ['e', 'f', 'g', 'f']) rig.enqueue(entry, `${entry} again`)
      assert.deepEqual([rig.queue.getQueueStats().pending, rig.queue.getQueueStats().uniqueEntries], [3, 3])
    }),
  )

  // C06 C16
  test(
    'entries are processed in the order they arrived',
    withRig({ maxConcurrency: 1 }, async (rig) => {
      for (const entry of ['a', 'b', 'c']) rig.enqueue(entry, entry)
      await rig.settle()
      assert.deepEqual(rig.contents, ['a', 'b', 'c'])
    }),
  )

  // C15 C16
  test(
    'a newer version takes the place of the pending one',
    withRig({ maxConcurrency: 1, hold: true }, async (rig) => {
      for (const [entry, version] of [
        ['x', 'x1'],
        ['a', 'a1'],
        ['b', 'b1'],
        ['a', 'a2'],
        ['c', 'c1'],
      ] as const) {
        rig.enqueue(entry, version)
      }
      for (let index = 0; index < 4; index += 1) {
        await rig.settle()
        rig.call(index).succeed()
      }
      await rig.settle()
      assert.deepEqual(rig.contents, ['x1', 'a2', 'b1', 'c1'])
    }),
  )

  // C19
  test(
    'only the last of ten updates is embedded',
    withRig({ maxConcurrency: 1, hold: true }, async (rig) => {
      rig.enqueue('busy', 'busy')
      for (let update = 1; update <= 10; update += 1) rig.enqueue('e', `update ${update}`)
      await rig.settle()
      rig.call(0).succeed()
      await rig.settle()
      rig.call(1).succeed()
      await rig.settle()
      assert.deepEqual(rig.contents, ['busy', 'update 10'])
      assert.equal(rig.stored('e'), 'update 10')
    }),
  )
})

describe('the caller', () => {
  // C17 C18
  test(
    'enqueue starts the work without a timer and does not wait for it',
    withRig({ hold: true }, async (rig) => {
      const answer: unknown = rig.queue.enqueue({ entryType: 'tool', entryId: 'e', versionId: 'v', content: 'c' })
      assert.equal(answer, undefined)
      assert.equal(rig.calls.length, 0, 'the embedder was called inside the caller’s own call')
      const atMs = rig.clock.nowMs()
      await rig.settle()
      assert.equal(rig.calls.length, 1)
      assert.equal(rig.clock.nowMs(), atMs)
    }),
  )

  // C36
  test(
    'a read returns at once with the older vector while the newer is being made',
    withRig({ hold: true }, async (rig) => {
      rig.enqueue('e', 'v1')
      await rig.settle()
      rig.call(0).succeed([1])
      await rig.settle()
      rig.enqueue('e', 'v2')
      await rig.settle()
      assert.deepEqual(rig.embeddings.get('guideline', 'e')?.vector, [1])
      rig.call(1).succeed([2])
      await rig.settle()
      assert.deepEqual(rig.embeddings.get('guideline', 'e')?.vector, [2])
    }),
  )

  // X145
  test(
    'a version is queued after the commit of its transaction, and not at all after a rollback',
    withRig({}, async (rig) => {
      const input = (versionId: string): EmbeddingInput => ({
        entryType: 'tool',
        entryId: 'e',
        versionId,
        content: versionId,
      })
      const commit = Promise.withResolvers<void>()
      const enqueued = rig.queue.enqueueAfter(commit.promise, input('committed'))
      await rig.settle()
      assert.deepEqual(rig.contents, [], 'embedded before the commit')
      commit.resolve()
      assert.equal(await enqueued, true)
      assert.equal(await rig.queue.enqueueAfter(Promise.reject(new Error('rolled back')), input('rolled back')), false)
      await rig.settle()
      assert.deepEqual(rig.contents, ['committed'])
    }),
  )
})
