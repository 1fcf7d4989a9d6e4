import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NonRetryable, Offline, RetryAfter } from '../../../src/errors.ts'
import { openForTest } from '../../../src/testing/index.ts'
import { hashEmbedder } from '../embedders/hash.ts'
import { stableUuid } from '../uuid.ts'
import type { VectorEntry, VectorStore } from '../vector-store.ts'
import { type EmbeddingBatchData, EmbeddingsIncomplete } from './payload.ts'
import { countsOf, itemsOf, resultOf, ScriptedEmbedder, scene } from './rig.ts'
import { EmbeddingBatchWorker } from './worker.ts'

describe('embedding-batch', () => {
  // A95
  test('has its type, concurrency and limit', () => {
    const { definition, type, config } = new EmbeddingBatchWorker(hashEmbedder(), stubStore())
    assert.deepEqual([type, definition.type], ['embedding-batch', 'embedding-batch'])
    assert.deepEqual([config.concurrency, config.limiter], [3, { max: 5, duration: 1_000 }])
    assert.deepEqual(definition.limit, { max: 5, perMs: 1_000 })
  })

  // A96
  test('takes items with a text and a source, a namespace, and perhaps a column to update', async () => {
    await using stage = await openForTest()
    const { definition } = new EmbeddingBatchWorker(hashEmbedder(), stubStore())
    const item = { text: 't', sourceId: 's' }
    const whole = { ...item, embeddingId: 'e', metadata: { a: [1] }, seq: 3, versionId: 'v' }
    const full = { items: [item, whole], namespace: 'n', updateTable: 't', updateColumn: 'c' }
    await stage.mill.enqueue(definition, full)
    await stage.mill.enqueue(definition, { items: [], namespace: 'n' })
    const many = Array.from({ length: 1_001 }, () => item)
    const wrong: readonly unknown[] = [
      ...[
        { items: [item] },
        { items: [{ text: 't' }], namespace: 'n' },
        { items: [{ sourceId: 's' }], namespace: 'n' },
      ],
      ...[
        { items: [{ ...item, seq: -1 }], namespace: 'n' },
        // Left out silently, the version would not protect what is stored.
        { items: [{ ...item, version: 3 }], namespace: 'n' },
        { items: [item], namespace: 'n', updatecolumn: 'c' },
        { items: many, namespace: 'n' },
      ],
    ]
    for (const data of wrong) {
      const enqueued = stage.mill.enqueue(definition, data as EmbeddingBatchData)
      await assert.rejects(enqueued, { code: 'ERR_PAYLOAD_INVALID' }, JSON.stringify(data).slice(0, 80))
    }
  })

  // A97 A98 A99 A103 A105 A106
  test('embeds 32 texts at a time, in order, and says how far it is', async () => {
    await using rig = await scene()
    const items = itemsOf(70)
    const { view } = await rig.start({ items, namespace: 'docs' })
    assert.deepEqual(rig.embedder.sizes, [32, 32, 6])
    assert.deepEqual(
      rig.embedder.calls.flat(),
      items.map(({ text }) => text),
    )
    const shown = rig.worker.progress.map((told) => told as { batch?: number; percent: number; phase: string })
    assert.deepEqual(
      shown.map(({ phase, batch, percent }) => [phase, batch, Number(percent.toFixed(2))]),
      [
        ['embedding', 1, 26.67],
        ['embedding', 2, 53.33],
        ['embedding', 3, 80],
        ['complete', undefined, 100],
      ],
    )
    assert.deepEqual(shown[0], { phase: 'embedding', batch: 1, totalBatches: 3, percent: (1 / 3) * 80 })
    assert.deepEqual(shown[3], { phase: 'complete', percent: 100 })
    const result = resultOf(view)
    assert.deepEqual(countsOf(result), [70, 70, 0])
    assert.deepEqual(result.results[69], {
      ...{ sourceId: 's69', embeddingId: stableUuid('docs', 's69'), success: true },
    })
  })

  // A100 A101 X051
  test('stores each vector in the namespace, under its own id or one that every run gives it', async () => {
    await using rig = await scene()
    const items = [
      { text: 'one', sourceId: 's1', embeddingId: 'mine', metadata: { a: 1 } },
      { text: 'two', sourceId: 's2' },
    ]
    await rig.start({ items, namespace: 'docs' })
    const made = stableUuid('docs', 's2')
    assert.match(made, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const [mine, other] = await rig.store.get('docs', ['mine', made])
    const [one, two] = await hashEmbedder({ dimensions: 32 }).embedBatch(['one', 'two'])
    assert.deepEqual([mine?.vector, mine?.metadata], [one, { a: 1 }])
    assert.deepEqual([other?.vector, other?.metadata], [two, {}])
    assert.equal((await rig.store.namespace('docs'))?.count, 2)
    assert.notEqual(made, stableUuid('other', 's2'))
    assert.notEqual(stableUuid('a', 'bc'), stableUuid('ab', 'c'))
  })

  // A02 A104 A106 X050 X051
  test('a batch that fails leaves the others alone, and the next attempt embeds only what failed', async () => {
    await using rig = await scene()
    rig.embedder.answer = (call) => {
      if (call === 2) throw new Error('the model stumbled')
    }
    const items = itemsOf(70)
    const { view, again } = await rig.start({ items, namespace: 'docs' })
    assert.deepEqual(rig.embedder.sizes, [32, 32, 6])
    assert.equal(view.state, 'queued')
    assert.equal((await rig.store.namespace('docs'))?.count, 38)
    assert.match(
      view.error?.message ?? '',
      /^32 of 70 items are not finished \(s32, .* and 22 more\): the model stumbled/,
    )
    const last = { phase: 'incomplete', percent: 80, total: 70, succeeded: 38, failed: 32 }
    assert.deepEqual(rig.worker.progress.at(-1), last)
    const done = await again()
    assert.deepEqual(rig.embedder.sizes, [32, 32, 6, 32])
    assert.deepEqual(
      rig.embedder.calls[3],
      items.slice(32, 64).map(({ text }) => text),
    )
    assert.deepEqual(countsOf(resultOf(done)), [70, 70, 0])
    assert.equal((await rig.store.namespace('docs'))?.count, 70)
  })

  // A103 A104 A106 X050
  test('the error of an incomplete run carries the result of every item', async () => {
    const embedder = new ScriptedEmbedder()
    embedder.answer = (call) => {
      if (call === 2) throw new Error('the model stumbled')
    }
    const warned: unknown[] = []
    const log = { debug: () => {}, info: () => {}, error: () => {}, warn: (text: string) => void warned.push(text) }
    const worker = new EmbeddingBatchWorker(embedder, stubStore(), null, { log })
    const job = { id: '1', signal: new AbortController().signal, updateProgress: async () => true }
    const failed = await Promise.resolve(
      worker.process({ items: itemsOf(70), namespace: 'docs' }, job as unknown as Parameters<typeof worker.process>[1]),
    ).catch((error: unknown) => error)
    assert.ok(failed instanceof EmbeddingsIncomplete)
    assert.deepEqual(countsOf(failed.result), [70, 38, 32])
    assert.deepEqual(failed.result.results[32], {
      ...{ sourceId: 's32', embeddingId: null, success: false, error: 'the model stumbled' },
    })
    assert.equal(failed.result.results[64]?.success, true)
    assert.equal(failed.failedIds.length, 32)
    assert.deepEqual(warned, ['Batch failed'])
  })

  // A104 A106 X052
  test('items without a text, or with too long a one, fail their batch and nothing else, without a retry', async () => {
    await using rig = await scene()
    for (const text of ['', ' \n', 'x'.repeat(32_001)]) {
      const items = itemsOf(70).map((item) => ({ ...item, sourceId: `${text.length}-${item.sourceId}` }))
      items[40] = { text, sourceId: 'faulty' }
      const { view } = await rig.start({ items, namespace: `docs ${text.length}` })
      assert.equal(view.state, 'completed')
      const result = resultOf(view)
      assert.deepEqual(countsOf(result), [70, 38, 32])
      assert.match(
        result.results[32]?.error ?? '',
        /^(?:items have no text|texts are longer than 32000 characters): faulty;/,
      )
    }
  })

  // X052
  test('an embedder that returns too few vectors, another dimension or no numbers stores nothing of the batch', async () => {
    const vectors = (count: number, length = 32, value = 1) =>
      Array.from({ length: count }, () => Array(length).fill(value))
    const answers = {
      'returned 31 vectors for 32 texts': vectors(31),
      'returned 33 vectors for 32 texts': vectors(33),
      'holds vectors of 32 dimensions, and these have 31': vectors(32, 31),
      'of 31 dimensions instead of 32': [...vectors(31), ...vectors(1, 31)],
      'holds NaN': vectors(32, 32, Number.NaN),
      'nothing but zeros': vectors(32, 32, 0),
    }
    for (const [message, answer] of Object.entries(answers)) {
      await using rig = await scene()
      await rig.start({ items: itemsOf(1), namespace: 'docs' })
      rig.embedder.answer = () => answer
      const { view } = await rig.start({ items: itemsOf(33).slice(1), namespace: 'docs' })
      assert.equal(view.state, 'queued', message)
      assert.ok(view.error?.message.includes(message), view.error?.message)
      assert.equal((await rig.store.namespace('docs'))?.count, 1)
    }
  })

  test('vectors that arrive after the attempt was given up are not stored', async () => {
    await using rig = await scene()
    const attempt = new AbortController()
    // It does not heed the signal and answers all the same.
    rig.embedder.answer = () => void attempt.abort(new Error('timed out'))
    const job = { id: '1', signal: attempt.signal, updateProgress: async () => true }
    const data = { items: itemsOf(1), namespace: 'docs' }
    await assert.rejects(rig.worker.process(data, job as unknown as Parameters<typeof rig.worker.process>[1]), {
      message: 'timed out',
    })
    assert.equal(await rig.store.namespace('docs'), null)
  })

  test('an embedder that cannot be reached or asks for patience is left alone, and the job waits as it asks', async () => {
    await using rig = await scene()
    const first = async (error: Error) => {
      const before = rig.embedder.calls.length
      rig.embedder.answer = () => {
        throw error
      }
      const { view } = await rig.start({ items: itemsOf(70), namespace: 'docs' })
      return { calls: rig.embedder.calls.length - before, view }
    }
    const patient = await first(new RetryAfter('7m', 'slow down'))
    assert.deepEqual([patient.calls, patient.view.state, patient.view.attempt], [1, 'queued', 1])
    const offline = await first(new Offline('no route'))
    assert.deepEqual([offline.calls, offline.view.state, offline.view.attempt], [1, 'queued', 0])
    const refused = await first(new NonRetryable('the key was refused'))
    assert.deepEqual([refused.calls, refused.view.state], [3, 'dead_letter'])
    assert.match(refused.view.error?.message ?? '', /70 of 70 items are not finished .*the key was refused/)
  })

  test('a rate limit that stops a job half-way uses no attempt while each run stores something', async () => {
    await using rig = await scene()
    // Two requests an hour, for a job that needs seven and has five attempts.
    let left = 2
    rig.embedder.answer = () => {
      left -= 1
      if (left < 0) throw new RetryAfter('30m', 'two requests an hour')
    }
    const { again, view } = await rig.start({ items: itemsOf(200), namespace: 'docs' })
    assert.deepEqual([view.state, view.attempt], ['queued', 0])
    const last = { phase: 'incomplete', percent: 80, total: 200, succeeded: 64, failed: 136 }
    assert.deepEqual(rig.worker.progress.at(-1), last)
    left = 0
    const stuck = await again()
    assert.deepEqual([stuck.state, stuck.attempt], ['queued', 1], 'a run that stores nothing uses an attempt')
    for (const state of ['queued', 'queued', 'completed']) {
      left = 2
      assert.equal((await again()).state, state)
    }
    assert.equal((await rig.store.namespace('docs'))?.count, 200)
  })

  test('for at most a day, because jobs that replace the vectors of each other would go on for ever', async () => {
    await using rig = await scene()
    let call = 0
    rig.embedder.answer = () => {
      call += 1
      if (call % 2 === 0) throw new RetryAfter('25h', 'come back tomorrow')
    }
    const { again, view } = await rig.start({ items: itemsOf(200), namespace: 'docs' })
    assert.deepEqual([view.state, view.attempt], ['queued', 0])
    for (let hour = 0; hour < 25; hour += 1) await again()
    assert.equal((await again()).attempt, 1)
  })
})

/** A store that keeps nothing, for what does not depend on it. */
function stubStore(): VectorStore {
  return {
    upsert: async (_: string, entries: readonly VectorEntry[]) => entries.map(() => true),
    get: async (_: string, ids: readonly string[]) => ids.map(() => null),
    search: async () => [],
    remove: async () => 0,
  }
}
