import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { VECTOR_PLACES, WORKLOAD_PLACES, type WorkloadPlace } from '../../test/fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../test/servers/pgvector.ts'
import { hashEmbedder } from './embedders/hash.ts'
import { createEmbeddingQueue, EmbeddingBatchWorker, embedWith, openVectorStore, type SqlVectorStore } from './index.ts'
import { Rig } from './rig.ts'
import { vectorEmbeddings } from './vector-embeddings.ts'

/** For what never comes: how long a store takes is the machine's. */
const WAIT_MS = 120_000

for (const { name, makePlace } of VECTOR_PLACES) {
  describe(`the embedding queue on vectors in ${name}`, () => {
    let place: WorkloadPlace | null
    let vectors: SqlVectorStore
    before(async () => {
      place = await makePlace()
      if (place !== null) vectors = await openVectorStore(place.url, { migrate: true })
    })
    after(async () => {
      if (place === null) return
      await vectors.close()
      await place.remove()
    })
    const it = (title: string, run: () => Promise<void>): void =>
      void test(title, async (context) => (place === null ? context.skip(PGVECTOR_MISSING) : run()))

    /** A queue as a process would have it. */
    const open = (namespace: string) => {
      const embedded: string[] = []
      const embed = embedWith(hashEmbedder({ dimensions: 16 }))
      const queue = createEmbeddingQueue({
        embed: (content, context) => {
          embedded.push(content)
          return embed(content, context)
        },
        store: vectorEmbeddings(vectors, { namespace, model: 'hash-16-v1' }),
      })
      const finish = async (): Promise<void> => {
        assert.equal(await queue.drain(WAIT_MS), true)
        await queue.close()
      }
      return { queue, embedded, finish }
    }
    const version = (entryId: string, versionId: string, seq?: number) => ({
      ...{ entryType: 'guideline' as const, entryId, versionId, content: `${entryId} ${versionId}` },
      ...(seq !== undefined && { seq }),
    })
    const storedOf = async (namespace: string, entryId: string) =>
      (await vectors.get(namespace, [`guideline:${entryId}`]))[0]?.versionId

    // X017
    it('never stores an older version after a newer one, also when it was idle in between', async () => {
      const { queue, embedded, finish } = open('idle')
      queue.enqueue(version('a', 'v2', 2))
      assert.equal(await queue.drain(WAIT_MS), true)
      queue.enqueue(version('a', 'v1', 1))
      await finish()
      assert.deepEqual([embedded, await storedOf('idle', 'a')], [['a v2'], 'v2'])
    })

    it('goes on after a restart: what the next process enqueues is newer than what the last one stored', async () => {
      const first = open('restart')
      first.queue.enqueue(version('a', 'v1'))
      first.queue.enqueue(version('b', 'v1'))
      await first.finish()
      const second = open('restart')
      second.queue.enqueue(version('a', 'v2'))
      await second.finish()
      assert.equal(await storedOf('restart', 'a'), 'v2')
      const [found] = await vectors.search('restart', new Float32Array(16).fill(1), { filter: { entryId: 'b' } })
      assert.deepEqual([found?.id, found?.metadata], ['guideline:b', { entryType: 'guideline', entryId: 'b' }])
    })

    // X018
    it('enqueues at its start what the last process left: entries whose stored version is not the current one', async () => {
      const first = open('rescan')
      for (const entryId of ['same', 'changed', 'ahead']) first.queue.enqueue(version(entryId, 'v1', 5))
      await first.finish()
      const second = open('rescan')
      async function* current() {
        yield version('same', 'v1')
        yield version('changed', 'v2', 6)
        yield version('new', 'v1')
        yield version('ahead', 'v0', 4)
      }
      assert.deepEqual(await second.queue.rescan(current()), { checked: 4, enqueued: 2 })
      assert.equal(await second.queue.drain(WAIT_MS), true)
      assert.deepEqual(second.embedded.sort(), ['changed v2', 'new v1'])
      assert.deepEqual(await second.queue.rescan([version('changed', 'v2'), version('new', 'v1')]), {
        ...{ checked: 2, enqueued: 0 },
      })
      await second.finish()
    })

    // X017
    it('shares its vectors with batches, and a batch without a version never overwrites its own', async () => {
      const { queue, finish } = open('shared')
      queue.enqueue(version('a', 'v7', 7))
      await finish()
      const worker = new EmbeddingBatchWorker(hashEmbedder({ dimensions: 16 }), vectors)
      const job = { id: '1', signal: new AbortController().signal, updateProgress: async () => true }
      for (const seq of [undefined, 6, 8]) {
        const item = { text: 'batch', sourceId: 'a', embeddingId: 'guideline:a', versionId: `batch ${seq}` }
        const items = [seq === undefined ? item : { ...item, seq }]
        await worker.process({ items, namespace: 'shared' }, job as unknown as Parameters<typeof worker.process>[1])
        assert.equal(await storedOf('shared', 'a'), seq === 8 ? 'batch 8' : 'v7')
      }
    })
  })
}

test('a store that does not say what it holds cannot be rescanned', async () => {
  const rig = new Rig()
  await assert.rejects(rig.queue.rescan([]), { code: 'ERR_OPTION_INVALID' })
  await rig.close()
})

test('a dead letter that is retried is newer than everything that is stored', async () => {
  const place = await WORKLOAD_PLACES[0].makePlace()
  const vectors = await openVectorStore(place.url)
  const store = vectorEmbeddings(vectors, { namespace: 'dead' })
  const rig = new Rig({ store, maxRetries: 1 })
  await rig.settle()
  rig.answer = () => new Error('down')
  rig.enqueue('e', 'v1')
  assert.equal(await waitFor(rig, () => rig.queue.getQueueStats().dlqSize === 1), true)
  rig.answer = () => null
  assert.equal(rig.queue.retryDlq('guideline:e'), true)
  assert.equal(
    await waitFor(rig, () => rig.queue.getQueueStats().inFlight + rig.queue.getQueueStats().pending === 0),
    true,
  )
  assert.equal((await vectors.get('dead', ['guideline:e']))[0]?.versionId, 'v1')
  await rig.close()
  await vectors.close()
  await place.remove()
})

/** The test's clock turns the event loop, so that the store's own work is done between two looks. */
async function waitFor(rig: Rig, condition: () => boolean): Promise<boolean> {
  for (const untilMs = performance.now() + WAIT_MS; performance.now() < untilMs && !condition(); ) await rig.settle()
  return condition()
}
