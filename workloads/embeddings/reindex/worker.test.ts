import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { RetryAfter } from '../../../src/errors.ts'
import { drain, openForTest } from '../../../src/testing/index.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { VECTOR_PLACES, type WorkloadPlace } from '../../../test/fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../../test/servers/pgvector.ts'
import { type Embedder, searchText } from '../embedder.ts'
import { hashEmbedder } from '../embedders/hash.ts'
import { NamespaceMove } from '../vectors/move.ts'
import { openVectorStore, type SqlVectorStore } from '../vectors/store.ts'
import { type EmbeddingReindexData, EmbeddingReindexWorker } from './worker.ts'

const old = hashEmbedder({ dimensions: 24 })
const better = hashEmbedder({ dimensions: 48 })
const COUNT = 100

for (const { name, makePlace } of VECTOR_PLACES) {
  describe(`moving a namespace to another model on ${name}`, () => {
    let place: WorkloadPlace | null
    let store: SqlVectorStore
    before(async () => {
      place = await makePlace()
      if (place !== null) store = await openVectorStore(place.url, { migrate: true })
    })
    after(async () => {
      if (place === null) return
      await store.close()
      await place.remove()
    })
    const it = (title: string, run: () => Promise<void>): void =>
      void test(title, async (context) => (place === null ? context.skip(PGVECTOR_MISSING) : run()))

    /** Until a statement of another connection waits for a lock. */
    const isWaiting = async (): Promise<void> => {
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR SHARE%'`
      while ((await store.database.read(waiting)).length === 0) await systemClock.sleep(5)
    }

    /** The texts of a namespace, and writes of the old model. */
    const library = (namespace: string) => {
      const texts = new Map<string, string>()
      const write = async (id: string, text: string, seq: number, embedder = old): Promise<void> => {
        texts.set(id, text)
        const [vector = []] = await embedder.embedBatch([text])
        await store.upsert(namespace, [{ id, vector, seq, metadata: { id } }], { model: embedder.model })
      }
      const fill = async (count = COUNT): Promise<void> => {
        const entries = Array.from({ length: count }, (_, index) => ({
          id: `d${index}`,
          text: `text of number ${index}`,
        }))
        for (const { id, text } of entries) texts.set(id, text)
        const vectors = await old.embedBatch(entries.map(({ text }) => text))
        const rows = entries.map(({ id }, index) => ({ id, vector: vectors[index] ?? [], seq: 1, metadata: { id } }))
        await store.upsert(namespace, rows, { model: old.model })
      }
      /** Everything is there once, with the vector that the model gives its text. */
      const check = async (embedder: Embedder): Promise<void> => {
        const ids = [...texts.keys()]
        const info = await store.namespace(namespace)
        assert.deepEqual([info?.model, info?.count, info?.movingTo], [embedder.model, ids.length, null])
        const stored = await store.get(namespace, ids)
        const expected = await embedder.embedBatch([...texts.values()])
        for (const [index, one] of stored.entries()) {
          assert.deepEqual(one?.vector, expected[index], ids[index])
          assert.deepEqual(one?.metadata, { id: ids[index] })
        }
        const generations = await store.generations.all()
        assert.equal(generations.filter((one) => one.namespace === namespace).length, 1, 'the old vectors are gone')
      }
      return { texts, write, fill, check }
    }
    const copyAll = async (move: NamespaceMove, texts: ReadonlyMap<string, string>): Promise<void> => {
      for (const entry of await move.next(0, 10, new Set())) {
        const [vector] = await better.embedBatch([texts.get(entry.id) ?? ''])
        const moved = { ...entry, vector: Float32Array.from(vector ?? []) }
        await move.put(48, [moved])
      }
    }
    const reindex = async (
      data: EmbeddingReindexData,
      texts: (id: string, call: number) => Promise<string | null>,
      embedder = better,
    ) => {
      let call = 0
      const worker = new EmbeddingReindexWorker({
        ...{ store, embedder },
        texts: (entries) => {
          call += 1
          return Promise.all(entries.map(({ id }) => texts(id, call)))
        },
      })
      await using stage = await openForTest()
      const { id } = await stage.mill.enqueue(worker.definition, data)
      await drain(stage.mill, [worker.definition])
      return (await stage.mill.jobs()).find((job) => job.id === id)
    }

    it('a rate limit uses no attempt once something was copied', async () => {
      const { texts, fill } = library('limited')
      await fill()
      const limitedFrom = (call: number): Embedder => {
        let calls = 0
        const embedBatch: Embedder['embedBatch'] = async (batch) => {
          calls += 1
          if (calls >= call) throw new RetryAfter('1h', 'two requests an hour')
          return better.embedBatch(batch)
        }
        return { model: better.model, embedBatch }
      }
      const text = async (id: string) => texts.get(id) ?? null
      const attempts = async (call: number) =>
        (await reindex({ namespace: 'limited' }, text, limitedFrom(call)))?.attempt
      assert.deepEqual([await attempts(3), await attempts(1), await attempts(2)], [0, 1, 0])
    })

    it('readers and writers go on, and what changes meanwhile is not lost', async () => {
      const { texts, write, fill, check } = library('live')
      await fill()
      const found: number[] = []
      const view = await reindex({ namespace: 'live' }, async (id, call) => {
        const text = texts.get(id) ?? null
        if (id !== 'd40') return text
        const results = await searchText(store, [better, old], 'live', 'text of number 7', { limit: 3 })
        found.push(results.length)
        // After its own text was read, and before the new vector is stored.
        if (call === 2) await write('d40', 'changed while it was copied', 2)
        await write('d1', 'changed after it was copied', 2)
        await write('new', 'written during the move', 1)
        texts.delete('d2')
        await store.remove('live', ['d2'])
        texts.delete('d99')
        await store.remove('live', ['d99'])
        return text
      })
      assert.deepEqual(
        [view?.state, view?.result],
        ['completed', { namespace: 'live', model: better.model, moved: COUNT - 1, missing: 0 }],
      )
      assert.ok(found.length >= 2 && found.every((count) => count === 3), `${found}`)
      await check(better)
      const [first] = await searchText(store, [better, old], 'live', 'changed after it was copied')
      assert.equal(first?.id, 'd1')
      await assert.rejects(write('d1', 'late', 3, old), /holds vectors of 48 dimensions|of the model/)
    })

    it('a move that is interrupted anywhere goes on where it was, and one that has ended does nothing', async () => {
      const { texts, fill, check } = library('killed')
      await fill()
      for (const stopAt of [1, 2, 2]) {
        let copied = 0
        const view = await reindex({ namespace: 'killed' }, async (id, call) => {
          copied += 1
          if (call === stopAt) throw new Error('killed')
          return texts.get(id) ?? null
        })
        assert.equal(view?.state, 'queued')
        assert.ok(copied <= 64, 'what was copied before is not copied again')
        assert.equal((await store.namespace('killed'))?.model, old.model)
      }
      assert.equal((await store.namespace('killed'))?.movingTo, better.model)
      await reindex({ namespace: 'killed' }, async (id) => texts.get(id) ?? null)
      await check(better)
      const again = await reindex({ namespace: 'killed' }, () => Promise.reject(new Error('nothing to do')))
      assert.deepEqual(again?.result, { namespace: 'killed', model: better.model, moved: COUNT, missing: 0 })
    })

    it('what is written between the last look and the switch is not lost, and a kill after the switch leaves nothing behind', async () => {
      const { texts, write, fill, check } = library('late')
      await fill(3)
      const move = new NamespaceMove(store, 'late', better.model)
      const copy = (): Promise<void> => copyAll(move, texts)
      await copy()
      assert.deepEqual(await move.next(0, 10, new Set()), [])
      await write('d1', 'written at the last moment', 2)
      assert.equal(await move.finish(new Set()), false)
      assert.equal((await store.namespace('late'))?.model, old.model)
      await copy()
      assert.equal(await move.finish(new Set()), true)
      // The process ends here. Readers have the new vectors, and the next job of any namespace drops the old ones.
      assert.equal((await store.namespace('late'))?.model, better.model)
      await reindex({ namespace: 'late' }, () => Promise.reject(new Error('nothing to do')))
      await check(better)
    })

    it('a move that another process ends meanwhile is not begun again', async () => {
      const { texts, fill, check } = library('both')
      await fill()
      const lookup = async (id: string): Promise<string | null> => texts.get(id) ?? null
      let copied = 0
      const view = await reindex({ namespace: 'both' }, async (id, call) => {
        copied += 1
        if (copied === 1) assert.equal((await reindex({ namespace: 'both' }, lookup))?.state, 'completed')
        return call === 1 ? lookup(id) : assert.fail('it has ended')
      })
      assert.deepEqual(view?.result, { namespace: 'both', model: better.model, moved: COUNT, missing: 0 })
      assert.equal(copied, 32)
      await check(better)
    })

    it('a removal that waits for the switch removes the vector of the new model', async () => {
      const { texts, fill, check } = library('removed')
      await fill(3)
      await copyAll(new NamespaceMove(store, 'removed', better.model), texts)
      let removing: Promise<number> | null = null
      await store.database.transaction(async (transaction) => {
        const lock = transaction.dialect.forUpdate
        const building = await store.generations.locked(transaction, 'removed', 'building', lock)
        const active = await store.generations.locked(transaction, 'removed', 'active', lock)
        removing = store.remove('removed', ['d1'])
        if (transaction.dialect.name === 'postgres') await isWaiting()
        await store.generations.setState(transaction, active?.generation ?? 0, 'retired')
        await store.generations.setState(transaction, building?.generation ?? 0, 'active')
      })
      assert.equal(await removing, 1)
      texts.delete('d1')
      await store.dropRetired()
      await check(better)
    })

    it('an entry whose later write has a smaller number of change is copied again', async () => {
      const { texts, fill } = library('numbers')
      await fill(3)
      const move = new NamespaceMove(store, 'numbers', better.model)
      await copyAll(move, texts)
      const active = (await move.state())?.active.generation
      // On Postgres the number is drawn before the row is locked, so of two writers the later one can have the smaller number.
      await store.database.write([{ sql: `UPDATE {embedding_vectors_${active}} SET change = 0 WHERE id = 'd1'` }])
      assert.deepEqual(
        (await move.next(0, 10, new Set())).map(({ id }) => id),
        ['d1'],
      )
      await copyAll(move, texts)
      assert.deepEqual(await move.next(0, 10, new Set()), [], 'or the move would never end')
      assert.equal(await move.finish(new Set()), true)
    })

    it('vectors without a text stop the move before the switch, or are left out where that is asked for', async () => {
      const { texts, fill, check } = library('missing')
      await fill(40)
      texts.delete('d35')
      const lookup = async (id: string): Promise<string | null> => texts.get(id) ?? null
      const refused = await reindex({ namespace: 'missing' }, lookup)
      assert.equal(refused?.state, 'dead_letter')
      assert.match(refused?.error?.message ?? '', /1 vectors of 'missing' have no text \(d35\); nothing was switched/)
      assert.equal((await store.namespace('missing'))?.count, 40)
      const dropped = await reindex({ namespace: 'missing', dropMissing: true }, lookup)
      assert.deepEqual(dropped?.result, { namespace: 'missing', model: better.model, moved: 39, missing: 1 })
      await check(better)
    })

    it('an unfinished move to one model is not mixed with another', async () => {
      const { texts, fill, check } = library('two')
      await fill(40)
      const best = hashEmbedder({ dimensions: 64 })
      const lookup = async (id: string): Promise<string | null> => texts.get(id) ?? null
      await reindex({ namespace: 'two' }, (id, call) => (call === 2 ? Promise.reject(new Error('killed')) : lookup(id)))
      const mixed = await reindex({ namespace: 'two' }, lookup, best)
      assert.match(mixed?.error?.message ?? '', /is moving to the model 'hash-48-v1'; .* 'restart'/)
      await reindex({ namespace: 'two', restart: true }, lookup, best)
      await check(best)
      const unknown = await reindex({ namespace: 'nowhere' }, lookup)
      assert.equal(unknown?.state, 'dead_letter')
    })
  })
}
