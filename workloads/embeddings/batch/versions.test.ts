import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stableUuid } from '../uuid.ts'
import { itemsOf, resultOf, ScriptedEmbedder, scene } from './rig.ts'
import { EmbeddingBatchWorker } from './worker.ts'

describe('versions of items', () => {
  // X017
  test('a late batch never overwrites a newer vector, and says so', async () => {
    await using rig = await scene()
    const item = (seq: number, text: string) => ({ text, sourceId: 's', seq })
    await rig.start({ items: [item(5, 'newer')], namespace: 'docs' })
    const { view } = await rig.start({ items: [item(4, 'older')], namespace: 'docs' })
    assert.deepEqual(resultOf(view).results[0], {
      ...{ sourceId: 's', embeddingId: stableUuid('docs', 's'), success: true, superseded: true },
    })
    assert.deepEqual(rig.embedder.calls.flat(), ['newer'], 'an outdated text is not even embedded')
    const id = stableUuid('docs', 's')
    assert.equal((await rig.store.get('docs', [id]))[0]?.seq, 5)
  })

  // X017
  test('of two batches of the same item at once the newer one stays, whichever is stored last', async () => {
    await using rig = await scene()
    const older = Promise.withResolvers<undefined>()
    rig.embedder.answer = (_, [text]) => (text === 'older' ? older.promise : undefined)
    const started = rig.start({ items: [{ text: 'older', sourceId: 's', seq: 1 }], namespace: 'docs' })
    const other = new ScriptedEmbedder()
    const worker = new EmbeddingBatchWorker(other, rig.store)
    const job = { id: '2', signal: new AbortController().signal, updateProgress: async () => true }
    const newer = { items: [{ text: 'newer', sourceId: 's', seq: 2 }], namespace: 'docs' }
    await worker.process(newer, job as unknown as Parameters<typeof worker.process>[1])
    older.resolve(undefined)
    assert.equal(resultOf((await started).view).results[0]?.superseded, true)
    const [stored] = await rig.store.get('docs', [stableUuid('docs', 's')])
    assert.equal(stored?.seq, 2)
  })

  // A02
  test('a job that runs twice leaves the same vectors, and embeds nothing again', async () => {
    await using rig = await scene()
    const data = { items: itemsOf(40).map((item) => ({ ...item, metadata: { b: 1, a: { c: 2 } } })), namespace: 'docs' }
    const ids = data.items.map(({ sourceId }) => stableUuid('docs', sourceId))
    const first = resultOf((await rig.start(data)).view)
    const before = await rig.store.get('docs', ids)
    assert.deepEqual(resultOf((await rig.start(data)).view), first)
    assert.deepEqual(await rig.store.get('docs', ids), before)
    assert.deepEqual(rig.embedder.sizes, [32, 8])
    const [one] = data.items
    assert.ok(one)
    await rig.start({ items: [{ ...one, text: 'changed' }], namespace: 'docs' })
    await rig.start({ items: [{ ...one, text: 'changed', metadata: { b: 2 } }], namespace: 'docs' })
    assert.deepEqual(rig.embedder.sizes, [32, 8, 1, 1], 'another text and other metadata are stored')
    assert.equal((await rig.store.namespace('docs'))?.count, 40)
  })

  // A02
  test('of several items for one vector the newest is embedded, in every run of the job', async () => {
    await using rig = await scene()
    const seen = (...texts: readonly string[]) =>
      texts.map((text, seq) => ({ text, sourceId: 'counted', seq: 9 - seq }))
    const items = [{ text: 'first', sourceId: 's' }, ...itemsOf(40), { text: 'last', sourceId: 's' }]
    const data = { items: [...items, ...seen('newest', 'older')], namespace: 'docs' }
    const ids = ['s', 'counted'].map((sourceId) => stableUuid('docs', sourceId))
    const first = resultOf((await rig.start(data)).view)
    const before = await rig.store.get('docs', ids)
    assert.deepEqual(
      rig.embedder.calls.flat().filter((text) => !text.startsWith('the text')),
      ['last', 'newest'],
    )
    assert.deepEqual(resultOf((await rig.start(data)).view), first)
    assert.deepEqual(await rig.store.get('docs', ids), before)
    assert.equal(rig.embedder.calls.flat().length, 42, 'nothing is embedded again')
    const superseded = first.results.flatMap((result, index) => (result.superseded === true ? [index] : []))
    assert.deepEqual([first.succeeded, first.failed, superseded], [44, 0, [0, 43]])
  })

  test('an item that is replaced in its job fails with the one that replaces it', async () => {
    await using rig = await scene()
    const { view } = await rig.start({
      items: [
        { text: 'a', sourceId: 's' },
        { text: ' ', sourceId: 's' },
      ],
      namespace: 'docs',
    })
    assert.deepEqual(
      resultOf(view).results.map(({ success }) => success),
      [false, false],
    )
    assert.equal(await rig.store.namespace('docs'), null)
  })
})
