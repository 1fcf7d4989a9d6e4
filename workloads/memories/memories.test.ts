import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { drain } from '../../src/testing/index.ts'
import { VECTOR_PLACES, type WorkloadPlace } from '../../test/fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../test/servers/pgvector.ts'
import { EmbeddingReindexWorker, hashEmbedder, IndexOptimizationWorker, openVectorStore } from '../embeddings/index.ts'
import { type Memories, MemoryRemoval, openMemories } from './index.ts'
import { ANN, BOB, ScriptedLlm } from './rig.ts'

const TEXTS = [
  'Ann drinks green tea every morning.',
  'Every morning Ann drinks a green tea.',
  'The deployment of the shop failed on Friday because of a full disk.',
  'On Friday the deployment failed: the disk of the shop was full.',
  'Zürich is the city where Ann was born.',
]

for (const { name, makePlace } of VECTOR_PLACES) {
  describe(`openMemories on ${name}`, () => {
    let place: WorkloadPlace | null = null
    let memories: Memories
    const llm = new ScriptedLlm()
    before(async (context) => {
      place = await makePlace()
      if (place === null) return 'skip' in context ? context.skip(PGVECTOR_MISSING) : undefined
      memories = await openMemories({ engine: place.url, migrate: true, model: llm })
    })
    after(async () => {
      await memories?.close()
      await place?.remove()
    })

    const found = async (text: string, by: 'meaning' | 'words' | 'both', owner = ANN) =>
      (await memories.search({ ...owner, text, by, limit: 2 })).map(({ memory }) => memory.content)

    // A02 A92
    test('what is remembered is found by words at once, and by meaning once it is embedded', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const saved = await memories.rememberAll(TEXTS.map((content) => ({ ...ANN, content, importance: 0.8 })))
      await memories.remember({ ...BOB, content: 'Bob drinks green tea too.' })
      assert.deepEqual(await found('zürich', 'words'), [TEXTS[4]])
      assert.deepEqual(await found('zürich', 'meaning'), [])
      // One job for each owner, in the transaction of the rows.
      assert.equal((await drain(memories.mill, memories.jobs)).complete, 2)
      // Once more, and nothing is embedded again.
      const again = { ...ANN, memoryIds: saved.map(({ id }) => id) }
      const receipt = await memories.mill.enqueue(memories.jobs[1], again)
      await drain(memories.mill, memories.jobs)
      assert.deepEqual(await memories.mill.result(receipt), {
        ...{ memoriesEmbedded: 0, memoriesUnchanged: 5, memoriesUnknown: 0 },
      })
      assert.deepEqual(new Set(await found('green teas in the morning', 'meaning')), new Set(TEXTS.slice(0, 2)))
      assert.deepEqual(new Set(await found('why did the shop deployment fail?', 'both')), new Set(TEXTS.slice(2, 4)))
      assert.deepEqual(await found('green tea', 'both', BOB), ['Bob drinks green tea too.'])
      assert.deepEqual(await found('zürich', 'both', BOB), ['Bob drinks green tea too.'])
      assert.deepEqual(await found('zürich', 'words', BOB), [])
      assert.deepEqual(
        (
          await memories.repository.findByIds(
            saved.map(({ id }) => id),
            ANN,
          )
        ).map(({ embeddingId }) => embeddingId),
        saved.map(({ id }) => id),
      )
    })

    test('a memory that is saved under the id of a forgotten one has its own vector, also where that one is still to be removed', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const CARL = { workspaceId: 'w1', userId: 'carl' }
      const id = crypto.randomUUID()
      for (const content of ['first words', 'second words']) {
        await memories.remember({ ...CARL, id, content })
        await drain(memories.mill, memories.jobs)
      }
      // As the command line does where the vectors are in another database.
      const removal = new MemoryRemoval({ database: memories.repository.database, removeVectors: null })
      await removal.forget(CARL, [id])
      await memories.remember({ ...CARL, id, content: 'green tea' })
      await memories.mill.enqueue(memories.jobs[3], {})
      await drain(memories.mill, memories.jobs)
      await memories.mill.enqueue(memories.jobs[3], {})
      await drain(memories.mill, memories.jobs)
      const [one] = await memories.search({ ...CARL, text: 'green tea', by: 'meaning' })
      assert.ok((one?.score ?? 0) > 0.99, `${one?.score}`)
      assert.equal((await memories.forget(CARL, [id])).vectors, 1)
    })

    test('no text of a user is syntax of the search', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const hostile = [
        '"',
        '* OR *',
        'NEAR(tea, 2)',
        "tea' | 'x",
        "\\'tea\\\\",
        'content: tea',
        '(((',
        'tea:* & !x',
        '😀',
        '\0tea',
        '-tea AND',
      ]
      for (const text of hostile) {
        for (const content of await found(text, 'words')) assert.match(content, /tea|drinks/i, text)
      }
      await assert.rejects(memories.search({ ...ANN, text: ' ' }), /'text'/)
      await assert.rejects(memories.search({ ...ANN, text: 'x', limit: 0 }), /'limit' is 0/)
      // @ts-expect-error: neither of them
      await assert.rejects(memories.search({ ...ANN, text: 'x', by: 'smell' }), /'by' is 'smell'/)
      // @ts-expect-error: an owner is needed
      await assert.rejects(memories.search({ userId: 'ann', text: 'x' }), /'workspaceId'/)
    })

    test('a memory that both searches find comes before one that a single one finds; expired ones are not found', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const owner = { workspaceId: 'w9', userId: 'eve' }
      await memories.rememberAll([
        { ...owner, content: 'Lighthouse keepers polish the lamp.' },
        { ...owner, content: 'The lamp of the lighthouse is polished by its keepers.' },
        { ...owner, content: 'Polish the lighthouse lamp!', expiresAt: new Date(0) },
        { ...owner, content: 'Sourdough needs time.' },
      ])
      await drain(memories.mill, memories.jobs)
      const all = await memories.search({ ...owner, text: 'polish lighthouse lamp' })
      assert.deepEqual(
        all.map(({ memory }) => memory.content),
        [...all].sort((a, b) => b.score - a.score).map(({ memory }) => memory.content),
      )
      assert.equal(all[0]?.memory.content, 'Lighthouse keepers polish the lamp.')
      // Sourdough has none of the words: only the search by meaning returns it, as the least similar.
      assert.equal(all.at(-1)?.memory.content, 'Sourdough needs time.')
      assert.equal(all.length, 3)
      assert.equal((await memories.search({ ...owner, text: 'polish lighthouse lamp', by: 'words' })).length, 2)
    })

    // A91 A92 A93 X053
    test('similar memories are consolidated with the threshold of the embedder, and the synthesis is found', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      llm.answer = () => 'The shop could not be deployed on Friday: its disk was full.'
      const receipt = await memories.consolidate(ANN)
      assert.ok(receipt)
      await drain(memories.mill, memories.jobs)
      assert.partialDeepStrictEqual(await memories.mill.result(receipt), {
        ...{ consolidated: true, clustersProcessed: 3, clustersSkipped: 1, memoriesCreated: 2, memoriesIndexed: 2 },
        ...{ sourceMemoriesProcessed: 5, memoriesSkipped: [] },
      })
      const syntheses = await memories.repository.list(ANN, { type: 'semantic' })
      assert.equal(syntheses.length, 2)
      const near = await memories.search({ ...ANN, text: 'deployed shop disk', by: 'meaning', limit: 4 })
      assert.ok(near.some(({ memory }) => memory.type === 'semantic'))
      // Only what no merge has taken in: one memory is too few.
      assert.equal(await memories.consolidate(ANN), null)
    })

    test('a memory and its embedding are saved within a transaction of the caller, or not at all', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const { database } = memories.repository
      const before = (await memories.mill.jobs({ limit: 100 })).length
      await assert.rejects(
        database.transaction(async ({ within }) => {
          await memories.remember({ ...ANN, content: 'never committed' }, { within })
          throw new Error('changed my mind')
        }),
        /changed my mind/,
      )
      assert.equal((await memories.mill.jobs({ limit: 100 })).length, before)
      assert.deepEqual(await found('committed', 'words'), [])
    })

    test('forgotten text is gone from search, vectors and tables', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const secret = 'Quetzalcoatl999 lives in the cellar'
      const { id } = await memories.remember({ ...ANN, content: secret })
      await drain(memories.mill, memories.jobs)
      if (name === 'SQLite') assert.ok(inFile(place.url))
      assert.deepEqual(await memories.forget(BOB, [id]), { memories: [], derived: [], vectors: 0, isErased: true })
      assert.deepEqual(await memories.forget(ANN, [id]), {
        ...{ memories: [id], derived: [], vectors: 1, isErased: true },
      })
      for (const by of ['meaning', 'words', 'both'] as const) {
        assert.ok(!(await found(secret, by)).includes(secret))
      }
      if (name === 'SQLite') assert.ok(!inFile(place.url))
    })

    test('an embedding that comes after the memory was forgotten leaves no vector', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const { id } = await memories.remember({ ...ANN, content: 'short-lived' })
      await memories.forget(ANN, [id])
      const [job] = await memories.mill.jobs({ type: 'memory-embedding', limit: 1 })
      await drain(memories.mill, memories.jobs)
      assert.deepEqual((await memories.mill.job(job?.id ?? ''))?.result, {
        ...{ memoriesEmbedded: 0, memoriesUnchanged: 0, memoriesUnknown: 1 },
      })
      assert.ok(!(await found('short-lived', 'meaning')).includes('short-lived'))
    })

    test('the vectors move to another model while memories are found, and all indexes can be optimized', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const [from, to] = [hashEmbedder(), hashEmbedder({ dimensions: 128 })]
      await using both = await openMemories({ engine: place.url, embedder: [from, to] })
      const nearest = async () =>
        (await both.search({ ...BOB, text: 'green tea', by: 'meaning' })).map(({ memory }) => memory.content)
      const before = await nearest()
      assert.equal(before.length, 1)
      const store = await openVectorStore(place.url)
      const reindex = new EmbeddingReindexWorker({ store, embedder: to, texts: both.texts })
      const optimization = new IndexOptimizationWorker({ indexes: both.indexes })
      const receipt = await both.mill.enqueue(reindex.definition, { namespace: 'memories' })
      const optimized = await both.mill.enqueue(optimization.definition, { threshold: 0.8 })
      await drain(both.mill, [reindex.definition, optimization.definition])
      assert.partialDeepStrictEqual(await both.mill.result(receipt), { model: to.model, missing: 0 })
      assert.partialDeepStrictEqual(await both.mill.result(optimized), {
        reports: [{ name: 'memories-full-text' }, { name: 'vectors' }],
      })
      await store.close()
      assert.deepEqual(await nearest(), before)
      // The one that knows only the old model says what to do.
      await assert.rejects(memories.search({ ...BOB, text: 'tea', by: 'meaning' }), { code: 'ERR_VECTORS' })
    })

    test('work runs the jobs and keeps the schedules', async (t) => {
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const completed = memories.mill.events.next('job.settled')
      await memories.work({ poll: '50ms' })
      await memories.remember({ ...ANN, content: 'worked on' })
      await completed
      assert.deepEqual((await memories.mill.schedules.list()).map(({ name: of }) => of).toSorted(), [
        ...['memory-cleanup', 'memory-importance-decay'],
      ])
    })
  })
}

/** Whether the file or its log holds the word that is to be forgotten. */
function inFile(url: string): boolean {
  const file = url.slice('sqlite:'.length)
  return [file, `${file}-wal`].some((one) =>
    readFileSync(one).toString('latin1').toLowerCase().includes('quetzalcoatl999'),
  )
}

test('unknown options and engines without tables are refused', async () => {
  // @ts-expect-error: it is 'embedder'
  await assert.rejects(openMemories({ engine: 'sqlite:x', embeder: 1 }), /did you mean 'embedder'/)
  await assert.rejects(openMemories({ engine: 'redis://127.0.0.1' }), /sqlite: or postgres:/)
})
