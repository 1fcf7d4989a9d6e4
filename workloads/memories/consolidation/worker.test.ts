import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { drain, openForTest } from '../../../src/testing/index.ts'
import type { Vector } from '../../embeddings/options.ts'
import type { NewMemory } from '../memory.ts'
import { jobOf, ScriptedLlm } from '../rig.ts'
import type { MemoryConsolidationData, MemoryConsolidationResult } from './contract.ts'
import { MemoryConsolidationWorker } from './worker.ts'

interface Given {
  readonly id: string
  readonly vector: Vector | null
  readonly importance?: number
  readonly embeddingId?: string | null
}

const NEAR = [0.81, Math.sqrt(1 - 0.81 ** 2), 0]
const AT_THRESHOLD = [0.8, 0.6, 0]
const FAR = [0, 0, 1]

/** A worker on stubs that have the methods of the design and no others. */
function stubbed(given: readonly Given[]) {
  const calls = { findByIds: [] as unknown[], getById: [] as unknown[], importances: [] as unknown[] }
  const saved: NewMemory[] = []
  const llm = new ScriptedLlm()
  const repository = {
    async findByIds(ids: readonly string[]) {
      calls.findByIds.push(ids)
      return given.map(({ id, importance = 0.5, embeddingId = `v-${id}` }) => ({
        id,
        importance,
        embeddingId,
        content: `memory ${id}`,
      }))
    },
    async save(memory: NewMemory) {
      saved.push(memory)
      return memory
    },
    async updateImportance(id: string, importance: number) {
      calls.importances.push([id, importance])
    },
  }
  const vectors = {
    async getById(id: string) {
      calls.getById.push(id)
      return given.find((one) => `v-${one.id}` === id)?.vector
    },
  }
  const worker = new MemoryConsolidationWorker(repository, vectors, llm)
  const data = (consolidationType = 'merge'): MemoryConsolidationData => ({
    ...{ workspaceId: 'w1', userId: 'ann', memoryIds: given.map(({ id }) => id), consolidationType },
  })
  const run = async (consolidationType?: string) => {
    const job = jobOf(data(consolidationType))
    const result: MemoryConsolidationResult = await worker.process(job.data, job)
    return { result, reported: job.reported }
  }
  return { worker, llm, saved, calls, data, run }
}

const pair: readonly Given[] = [
  { id: 'm1', vector: [1, 0, 0], importance: 0.2 },
  { id: 'm2', vector: NEAR, importance: 0.9 },
]

describe('the worker of memory-consolidation, on stubs of its three ports', () => {
  // A76 A77 A94
  test('has the type, concurrency, limiter and payload of the design', async () => {
    const { worker, data } = stubbed(pair)
    assert.partialDeepStrictEqual(worker.definition, {
      ...{ type: 'memory-consolidation', concurrency: 5, limit: { max: 10, perMs: 1_000 } },
      ...{ attempts: 3, timeoutMs: 300_000 },
    })
    await using stage = await openForTest()
    const { workspaceId: _, ...without } = data()
    for (const wrong of [without, { ...data(), memoryIds: 'm1' }, { ...data(), extra: 1 }, { ...data(), userId: '' }]) {
      // @ts-expect-error: this is what the schema is there for
      await assert.rejects(stage.mill.enqueue(worker.definition, wrong), { code: 'ERR_PAYLOAD_INVALID' })
    }
    await stage.mill.enqueue(worker.definition, data())
    assert.equal((await drain(stage.mill, [worker.definition])).complete, 1)
  })

  // A76
  test('runs five at once', async () => {
    await using stage = await openForTest()
    const { worker, llm, data } = stubbed(pair)
    let [running, most] = [0, 0]
    const five = Promise.withResolvers<void>()
    llm.before = async () => {
      running += 1
      most = Math.max(most, running)
      if (running === 5) five.resolve()
      await five.promise
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
    }
    await stage.mill.enqueueMany(worker.definition, Array(8).fill(data()))
    await drain(stage.mill, [worker.definition], { concurrency: 50 })
    assert.equal(most, 5)
  })

  // A78 A79
  test('loads the memories by their ids, and writes nothing for fewer than two', async () => {
    for (const given of [[], pair.slice(0, 1)]) {
      const { run, calls, saved, llm, data } = stubbed(given)
      const { result } = await run()
      assert.partialDeepStrictEqual(result, { consolidated: false, reason: 'insufficient_memories' })
      assert.deepEqual(calls.findByIds, [data().memoryIds])
      assert.deepEqual([saved, llm.asked, calls.importances], [[], [], []])
    }
  })

  // A80 A81 A85 A86 A87 A88 A89 A90 A91 A93 A94
  test('merges a pair: progress, prompt, saved record, halved importances and result', async () => {
    const { run, calls, saved, llm } = stubbed(pair)
    llm.answer = () => '  both \n'
    const { result, reported } = await run()
    assert.deepEqual(reported, [
      { phase: 'analyzing', percent: 10 },
      { phase: 'generating', percent: 40 },
      { phase: 'indexing', percent: 80 },
      { phase: 'complete', percent: 100 },
    ])
    assert.deepEqual(calls.getById, ['v-m1', 'v-m2'])
    assert.deepEqual(llm.asked[0]?.options, { maxTokens: 200, temperature: 0.3 })
    assert.match(llm.asked[0]?.prompt ?? '', /^Synthesize the following.*\n\n<.*>\n1\. memory m1\n2\. memory m2\n<\//)
    const [memory] = saved
    assert.match(memory?.id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepEqual(
      { ...memory, id: null },
      {
        ...{ id: null, workspaceId: 'w1', userId: 'ann', type: 'semantic', content: 'both', importance: 0.9 },
        ...{ sourceType: 'consolidation', sourceId: 'job-1' },
        metadata: { sourceMemoryIds: ['m1', 'm2'], consolidationType: 'merge', synthesisConfidence: 0.7 },
      },
    )
    assert.deepEqual(calls.importances, [
      ['m1', 0.1],
      ['m2', 0.45],
    ])
    assert.partialDeepStrictEqual(result, {
      ...{ consolidated: true, clustersProcessed: 1, memoriesCreated: 1, sourceMemoriesProcessed: 2 },
    })
  })

  // A88 A91
  test('is more confident of three members, and another type than merge halves nothing', async () => {
    const { run, saved, calls } = stubbed([...pair, { id: 'm3', vector: [1, 0, 0] }])
    await run('summary')
    assert.partialDeepStrictEqual(saved[0]?.metadata, { synthesisConfidence: 0.9, consolidationType: 'summary' })
    assert.deepEqual(calls.importances, [])
  })

  // A82 A83 A84 A93 X056
  test('a similarity of exactly 0.8 is another cluster, and clusters of one are counted as skipped', async () => {
    const { run, saved } = stubbed([...pair, { id: 'm3', vector: AT_THRESHOLD }, { id: 'm4', vector: FAR }])
    const { result } = await run()
    assert.deepEqual(
      saved.map(({ metadata }) => metadata?.sourceMemoryIds),
      [['m1', 'm2']],
    )
    assert.partialDeepStrictEqual(result, {
      ...{ clustersProcessed: 3, clustersSkipped: 2, memoriesCreated: 1, sourceMemoriesProcessed: 4 },
    })
  })

  // X055
  test('a memory without a vector, or with one of another dimension, is skipped and reported', async () => {
    const { run, saved } = stubbed([
      { id: 'null', vector: [1, 0, 0], embeddingId: null },
      { id: 'missing', vector: null },
      ...pair,
      { id: 'flat', vector: [1, 0] },
      { id: 'nan', vector: [Number.NaN, 0, 0] },
    ])
    const { result } = await run()
    assert.equal(saved.length, 1)
    assert.partialDeepStrictEqual(result, {
      ...{ clustersProcessed: 1, sourceMemoriesProcessed: 6 },
      memoriesSkipped: [
        { id: 'null', reason: 'no vector' },
        { id: 'missing', reason: 'no vector' },
        { id: 'flat', reason: 'other dimension' },
        { id: 'nan', reason: 'no vector' },
      ],
    })
  })

  test('an answer that is empty, endless or repeats the code is refused, and nothing is saved', async () => {
    const answers = [() => ' \n', () => 'x'.repeat(2_001), (prompt: string) => prompt.slice(0, 900)]
    for (const answer of answers) {
      const { run, saved, llm } = stubbed(pair)
      llm.answer = answer
      await assert.rejects(run(), { name: 'ModelFailure', message: /the model's synthesis/ })
      assert.deepEqual(saved, [])
    }
  })
})
