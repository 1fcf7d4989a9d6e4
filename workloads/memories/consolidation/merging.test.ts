import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RetryAfter } from '../../../src/errors.ts'
import { WORKLOAD_PLACES } from '../../../test/fixtures/workload-places.ts'
import type { Embedder } from '../../embeddings/embedder.ts'
import { ANN, BOB, jobOf, MapVectors, ScriptedLlm, tablesIn, wordEmbedder, wordVector } from '../rig.ts'
import type { MemoryConsolidationData } from './contract.ts'
import { MemoryConsolidationWorker } from './worker.ts'

const TEA = ['ann likes green tea', 'green tea ann likes', 'likes ann green tea']
const BIKE = ['the red bike has a flat tyre', 'a flat tyre has the red bike']
const ALONE = 'zebras never whistle'

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`consolidation on ${name}`, () => {
    const opened = tablesIn(makePlace)

    /** A fresh user's memories, and a worker of them. */
    async function scene(embedder: Embedder = wordEmbedder) {
      await opened().database.write([{ sql: 'DELETE FROM {memories}' }, { sql: 'DELETE FROM {memory_merges}' }])
      const vectors = new MapVectors()
      const llm = new ScriptedLlm()
      const ids = await opened().remember(vectors, [...TEA, ...BIKE, ALONE])
      const worker = new MemoryConsolidationWorker(opened().repository, vectors, llm, { embedder })
      const run = (change: Partial<MemoryConsolidationData> = {}, jobId = 'job-1') => {
        const job = jobOf({ ...ANN, memoryIds: ids, consolidationType: 'merge', ...change }, jobId)
        return worker.process(job.data, job)
      }
      const semantic = async (owner = ANN) => opened().repository.list(owner, { type: 'semantic' })
      return { vectors, llm, ids, worker, run, semantic }
    }

    const halved = [0.4, 0.4, 0.4, 0.4, 0.4, 0.8]

    // A89 A90 A91 A92 A93 X053 X054
    test('a clean run, and the same job once more', async () => {
      const { run, ids, vectors, llm, semantic } = await scene()
      const result = await run()
      assert.deepEqual(result, {
        ...{ consolidated: true, clustersProcessed: 3, clustersSkipped: 1, clustersMergedBefore: 0 },
        ...{
          memoriesCreated: 2,
          memoriesIndexed: 2,
          sourceMemoriesProcessed: 6,
          memoriesUnknown: 0,
          memoriesSkipped: [],
        },
      })
      assert.deepEqual(await opened().importances(ids), halved)
      const created = await semantic()
      assert.deepEqual(created.map(({ content }) => content).toSorted(), ['synthesis of 2', 'synthesis of 3'])
      for (const { id, workspaceId, userId, sourceType, sourceId, importance, metadata, embeddingId } of created) {
        assert.deepEqual(
          [workspaceId, userId, sourceType, sourceId, importance],
          ['w1', 'ann', 'consolidation', 'job-1', 0.8],
        )
        assert.partialDeepStrictEqual(metadata, { consolidationType: 'merge' })
        assert.equal(embeddingId, id)
        const [stored] = await vectors.get('memories', [id])
        assert.partialDeepStrictEqual(stored, { metadata: { ...ANN, type: 'semantic' }, seq: 1 })
      }
      const rows = await opened().rows()
      const { size } = vectors.stored
      assert.deepEqual(await run(), result)
      assert.deepEqual(await opened().rows(), rows)
      assert.equal(vectors.stored.size, size)
      assert.equal(llm.asked.length, 2)
    })

    // X053
    test('another job with the same memories finds them merged, and asks no model', async () => {
      const { run, llm } = await scene()
      await run()
      const rows = await opened().rows()
      const result = await run({}, 'job-2')
      assert.partialDeepStrictEqual(result, { memoriesCreated: 0, clustersMergedBefore: 2, clustersProcessed: 3 })
      assert.deepEqual(await opened().rows(), rows)
      assert.equal(llm.asked.length, 2)
    })

    // X053
    test('jobs with the same memories at once create each memory once and halve once', async () => {
      const { run, ids, llm, semantic, vectors } = await scene()
      // All of them have read the memories as unmerged before the first of them writes.
      const all = Promise.withResolvers<void>()
      llm.before = async () => {
        if (llm.asked.length >= 6) all.resolve()
        await all.promise
      }
      const jobs = ['job-1', 'job-1', 'job-2', 'job-3', 'job-4', 'job-5']
      const results = await Promise.all(jobs.map((job) => run({}, job)))
      assert.deepEqual(await opened().importances(ids), halved)
      const created = await semantic()
      assert.equal(created.length, 2)
      assert.equal(vectors.stored.size, ids.length + 2)
      for (const result of results) assert.partialDeepStrictEqual(result, { consolidated: true, memoriesIndexed: 2 })
      // A job that overlaps without having all of the memories merges what is new, and halves only that.
      const [more = ''] = await opened().remember(vectors, ['likes tea green ann'])
      await run({ memoryIds: [...ids.slice(0, 3), more] }, 'job-6')
      assert.deepEqual(await opened().importances([...ids, more]), [...halved, 0.4])
      await run({ memoryIds: ids.slice(1, 3) }, 'job-7')
      assert.equal((await semantic()).length, 3)
    })

    test('an answer of the model that comes after the attempt was given up changes nothing', async () => {
      const { worker, llm, ids } = await scene()
      const attempt = new AbortController()
      llm.before = () => attempt.abort(new Error('cancelled'))
      const job = { ...jobOf({ ...ANN, memoryIds: ids, consolidationType: 'merge' }), signal: attempt.signal }
      const rows = await opened().rows()
      await assert.rejects(worker.process(job.data, job), { message: 'cancelled' })
      assert.deepEqual(await opened().rows(), rows)
    })

    test('memories whose text has changed since they were merged are merged again, and the others are not', async () => {
      const { run, ids, llm, semantic, vectors } = await scene()
      await run()
      const [bike = '', tyre = ''] = ids.slice(3, 5)
      const change = async (id: string, content: string) => {
        const saved = await opened().repository.save({ ...ANN, id, content, importance: 0.6 })
        await vectors.upsert('memories', [{ id, vector: wordVector(content), seq: saved.version }])
        await opened().repository.markEmbedded([saved])
      }
      await change(bike, 'the red bike was sold')
      await change(tyre, 'sold was the red bike')
      assert.deepEqual(await opened().repository.unmerged(ANN, 10), [bike, tyre, ids[5]])
      assert.partialDeepStrictEqual(await run({}, 'job-2'), { memoriesCreated: 1, clustersMergedBefore: 1 })
      assert.match(llm.asked.at(-1)?.prompt ?? '', /1\. the red bike was sold\n2\. sold was the red bike/)
      assert.deepEqual(await opened().importances([bike, tyre]), [0.3, 0.3])
      assert.equal((await semantic()).length, 3)
      const rows = await opened().rows()
      for (const job of ['job-1', 'job-2', 'job-3']) await run({}, job)
      assert.deepEqual(await opened().rows(), rows)
    })

    // A02 X053
    test('a job that dies between any two steps ends as a clean run does', async () => {
      const clean = await scene()
      await clean.run()
      const shape = async (ids: readonly string[]) => {
        const { memories, merges } = await opened().rows()
        return { count: memories.length, merges: merges.length, importances: await opened().importances(ids) }
      }
      const expected = await shape(clean.ids)
      // Each of them lets a step pass and dies before the next one.
      const deaths: readonly ((stage: Awaited<ReturnType<typeof scene>>) => void)[] = [
        ({ llm }) => dieOnce(llm, 1),
        ({ llm }) => dieOnce(llm, 2),
        ({ vectors }) => {
          vectors.failUpserts = 1
        },
      ]
      for (const die of deaths) {
        const stage = await scene()
        die(stage)
        await assert.rejects(stage.run())
        assert.partialDeepStrictEqual(await stage.run(), {
          memoriesCreated: 2,
          memoriesIndexed: 2,
          clustersProcessed: 3,
        })
        assert.deepEqual(await shape(stage.ids), expected)
        assert.equal(stage.vectors.stored.size, clean.vectors.stored.size)
      }
      // After the transaction, and after the vector was stored but not noted.
      const stage = await scene()
      await stage.run()
      for (const { id } of await stage.semantic()) {
        await opened().database.write([
          { sql: 'UPDATE {memories} SET embedding_id = NULL WHERE id = $1', values: [id] },
        ])
      }
      assert.partialDeepStrictEqual(await stage.run(), { memoriesCreated: 2, memoriesIndexed: 2 })
      assert.deepEqual(await shape(stage.ids), expected)
    })

    // X053
    test('what an attempt has merged stays together on a retry, also where a vector has come since', async () => {
      const { run, ids, llm, vectors, semantic } = await scene()
      const late = ids[2] ?? ''
      await opened().database.write([
        { sql: 'UPDATE {memories} SET embedding_id = NULL WHERE id = $1', values: [late] },
      ])
      dieOnce(llm, 2)
      await assert.rejects(run())
      await opened().repository.markEmbedded([{ id: late, version: 1 }])
      assert.partialDeepStrictEqual(await run(), { memoriesCreated: 2, clustersSkipped: 2 })
      assert.deepEqual(await opened().importances(ids), [0.4, 0.4, 0.8, 0.4, 0.4, 0.8])
      assert.equal((await semantic()).length, 2)
      assert.equal(vectors.stored.size, ids.length + 2)
    })

    test('a rate limit of the model uses no attempt after a merge of this job, and one otherwise', async () => {
      const limited = (llm: ScriptedLlm, nth: number) => dieOnce(llm, nth, new RetryAfter('30s', 'too many'))
      const { run, llm } = await scene()
      limited(llm, 1)
      await assert.rejects(run(), { code: 'ERR_RETRY_AFTER' })
      limited(llm, 3)
      await assert.rejects(run(), { code: 'ERR_POSTPONED', delay: '30s' })
      assert.partialDeepStrictEqual(await run(), { memoriesCreated: 2 })
      const other = await scene()
      await other.run({ memoryIds: other.ids.slice(0, 3) }, 'another')
      limited(other.llm, 2)
      await assert.rejects(other.run(), { code: 'ERR_RETRY_AFTER' })
    })

    // X054
    test('memories of other users and workspaces and unknown ids are not read, and counted', async () => {
      const { run, ids, llm, semantic, worker } = await scene()
      const foreign = await opened().repository.saveAll([
        { ...BOB, content: 'ann likes green tea' },
        { workspaceId: 'w2', userId: 'ann', content: 'ann likes green tea' },
      ])
      const memoryIds = [...ids.slice(0, 2), ...foreign.map(({ id }) => id), 'nobody', ids[0] ?? '']
      assert.partialDeepStrictEqual(await run({ memoryIds }), {
        ...{ sourceMemoriesProcessed: 2, memoriesUnknown: 3, memoriesCreated: 1 },
      })
      assert.match(llm.asked[0]?.prompt ?? '', /\n2\. [^\n]+\n<\//)
      assert.deepEqual(await semantic(BOB), [])
      const job = jobOf({ ...BOB, memoryIds: ids, consolidationType: 'merge' }, 'job-b')
      assert.deepEqual(await worker.process(job.data, job), {
        ...{ consolidated: false, reason: 'insufficient_memories', memoriesUnknown: 6 },
      })
    })

    test('a memory that is forgotten while the model reads it is not in the result', async () => {
      const { run, ids, llm, semantic } = await scene()
      const [first = ''] = ids
      meanwhile(llm, () => opened().database.write([{ sql: 'DELETE FROM {memories} WHERE id = $1', values: [first] }]))
      await assert.rejects(run(), { name: 'MemoriesChanged' })
      assert.deepEqual(await semantic(), [])
      assert.partialDeepStrictEqual(await run(), { memoriesCreated: 2, memoriesUnknown: 1 })
      for (const { metadata } of await semantic()) assert.ok(!JSON.stringify(metadata).includes(first))
    })

    test('a memory that is changed while the model reads it is read again', async () => {
      const { run, ids, llm, semantic } = await scene()
      const [id = ''] = ids
      meanwhile(llm, () => opened().repository.save({ ...ANN, id, content: 'ann hates tea' }))
      await assert.rejects(run(), { name: 'MemoriesChanged' })
      assert.deepEqual(await semantic(), [])
      // The new text has no vector yet.
      assert.partialDeepStrictEqual(await run(), { memoriesCreated: 2, memoriesSkipped: [{ id, reason: 'no vector' }] })
    })

    test('the threshold is that of the embedder', async () => {
      const strict = await scene({ ...wordEmbedder, threshold: 1.1 })
      assert.partialDeepStrictEqual(await strict.run(), { memoriesCreated: 0, clustersSkipped: 6 })
      const lax = await scene({ ...wordEmbedder, threshold: -1 })
      assert.partialDeepStrictEqual(await lax.run(), { memoriesCreated: 1, clustersSkipped: 0 })
    })

    test('an embedder that returns nonsense fails the job, and the next attempt repairs the index', async () => {
      let broken = true
      const { run } = await scene({
        model: 'broken',
        embedBatch: async (texts) => (broken ? texts.map(() => [Number.NaN]) : texts.map(wordVector)),
      })
      await assert.rejects(run(), { code: 'ERR_VECTORS', message: /'broken' holds NaN/ })
      broken = false
      assert.partialDeepStrictEqual(await run(), { memoriesCreated: 2, memoriesIndexed: 2 })
    })
  })
}

/** Happens before the first answer. */
function meanwhile(llm: ScriptedLlm, act: () => Promise<unknown>): void {
  llm.before = async () => {
    llm.before = () => {}
    await act()
  }
}

/** Fails the nth question, once. */
function dieOnce(llm: ScriptedLlm, nth: number, error = new Error('killed')): void {
  llm.before = () => {
    if (llm.asked.length !== nth) return
    llm.before = () => {}
    throw error
  }
}
