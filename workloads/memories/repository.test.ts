import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillraceError } from '../../src/index.ts'
import { WORKLOAD_PLACES } from '../../test/fixtures/workload-places.ts'
import type { NewMemory } from './memory.ts'
import { MemoryRemoval } from './removal.ts'
import { ANN, BOB, MapVectors, tablesIn } from './rig.ts'
import { memoriesFullText } from './upkeep/full-text.ts'

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`memories on ${name}`, () => {
    const opened = tablesIn(makePlace)

    test('a memory is read as it was saved, in the order of the ids', async () => {
      const { repository } = opened()
      const expiresAt = new Date('2027-01-01T00:00:00.000Z')
      const metadata = { channel: 'mail', nested: { n: [1, 'ü'] } }
      const given = {
        ...ANN,
        content: "it's 100 % \u0000 “quoted” 😀",
        importance: 0.3,
        sourceId: 's1',
        metadata,
        expiresAt,
      }
      const one = await repository.save(given)
      const two = await repository.save({ ...ANN, content: 'second' })
      assert.deepEqual(one, {
        ...given,
        ...{ id: one.id, content: "it's 100 %   “quoted” 😀", type: 'episodic', sourceType: 'user', embeddingId: null },
        ...{ version: 1, createdAt: new Date(Date.UTC(2026, 10, 17)), updatedAt: new Date(Date.UTC(2026, 10, 17)) },
      })
      assert.deepEqual(await repository.findByIds([two.id, 'unknown', one.id, two.id], ANN), [two, one])
      assert.deepEqual(
        (await repository.list(ANN)).map(({ id }) => id),
        [two.id, one.id],
      )
    })

    test('a list has a limit, and no unknown option', async () => {
      const { repository } = opened()
      for (const limit of [-1, 0, 1.5, Number.NaN, 10_001])
        await assert.rejects(repository.list(ANN, { limit }), {
          code: 'ERR_OPTION_INVALID',
          message: /from 1 to 10000/,
        })
      // @ts-expect-error: it is 'limit'
      await assert.rejects(repository.list(ANN, { limt: 1 }), /did you mean 'limit'/)
    })

    test('a changed text has a new version and no vector until it is embedded again', async () => {
      const { repository } = opened()
      const first = await repository.save({ ...ANN, content: 'one' })
      assert.deepEqual(await repository.markEmbedded([first]), [first.id])
      const same = await repository.save({ ...ANN, id: first.id, content: 'one', importance: 0.9 })
      assert.deepEqual([same.version, same.embeddingId, same.importance], [1, first.id, 0.9])
      const changed = await repository.save({ ...ANN, id: first.id, content: 'two' })
      assert.deepEqual([changed.version, changed.embeddingId], [2, null])
      // The vector of the first text comes late.
      await repository.markEmbedded([first])
      assert.equal((await repository.findByIds([first.id], ANN))[0]?.embeddingId, null)
    })

    // X054
    test('names and metadata of any characters are kept apart, or refused', async () => {
      const { repository } = opened()
      const metadata = { a: '\\u0000', b: 'a\0b', c: '\ud800', '\0': { d: ['\\\0'] } }
      const saved = await repository.save({ ...ANN, content: 'odd', metadata })
      assert.deepEqual(saved.metadata, { a: '\\u0000', b: 'a b', c: '\uFFFD', ' ': { d: ['\\ '] } })
      assert.deepEqual(await repository.findByIds(['\ud800', '\0', saved.id], ANN), [saved])
      for (const userId of ['ann\ud800', 'ann\ud801']) {
        const code = 'ERR_OPTION_INVALID'
        await assert.rejects(repository.save({ ...ANN, userId, content: 'of another' }), { code })
        await assert.rejects(repository.list({ ...ANN, userId }), { code })
      }
    })

    test('a memory that expires in the far future is kept, or refused where its time could not be compared', async () => {
      const { repository } = opened()
      const save = (time: string) => repository.save({ ...ANN, content: 'x', expiresAt: new Date(time) })
      assert.equal((await save('9999-12-31T23:59:59.999Z')).expiresAt?.getUTCFullYear(), 9999)
      for (const time of [
        '+010000-01-01T00:00:00.000Z',
        '+275760-09-13T00:00:00.000Z',
        '-000001-01-01T00:00:00.000Z',
      ]) {
        await assert.rejects(save(time), { code: 'ERR_OPTION_INVALID' })
      }
    })

    // X054
    test('another owner neither sees nor changes it', async () => {
      const { repository } = opened()
      const { id } = await repository.save({ ...ANN, content: 'mine' })
      for (const other of [BOB, { workspaceId: 'w2', userId: 'ann' }]) {
        assert.deepEqual(await repository.findByIds([id], other), [])
        assert.equal(await repository.updateImportance(id, 0, other), false)
        await assert.rejects(repository.save({ ...other, id, content: 'theirs' }), /cannot be used here/)
      }
      assert.equal(await repository.updateImportance(id, 1, ANN), true)
      assert.partialDeepStrictEqual(await repository.findByIds([id], ANN), [{ content: 'mine', importance: 1 }])
    })

    test('what a memory cannot be is refused, and nothing is saved', async () => {
      const { repository } = opened()
      const count = (await repository.list(ANN, { limit: 1_000 })).length
      const wrong: readonly (readonly [object, RegExp])[] = [
        [{ content: ' ' }, /'content' is empty/],
        [{ content: 'x'.repeat(10_001) }, /10001 characters/],
        [{ importance: 1.1 }, /'importance' is 1.1/],
        [{ importance: Number.NaN }, /'importance' is NaN/],
        [{ id: 'm1' }, /not a UUID/],
        [{ type: 'Not a word' }, /the type/],
        [{ userId: '' }, /'userId'/],
        [{ workspaceId: undefined }, /'workspaceId'/],
        [{ metadata: [] }, /'metadata' is not an object/],
        [{ metadata: { text: 'x'.repeat(10_001) } }, /'metadata' has/],
        [{ expiresAt: new Date(Number.NaN) }, /'expiresAt'/],
        [{ tags: [] }, /'tags' is not an option/],
      ]
      for (const [change, message] of wrong) {
        const memory: NewMemory = { ...ANN, content: 'x', ...change }
        await assert.rejects(repository.saveAll([{ ...ANN, content: 'good' }, memory]), (error) => {
          assert.ok(isMillraceError(error, 'ERR_OPTION_INVALID'))
          assert.match(error.message, message)
          return true
        })
      }
      assert.equal((await repository.list(ANN, { limit: 1_000 })).length, count)
    })

    test('forgetting removes a memory, what was merged from it and their vectors, and nothing of others', async () => {
      const { repository, remember, database, clock } = opened()
      const vectors = new MapVectors()
      const ids = await remember(vectors, ['a b c', 'c b a', 'unrelated'])
      const [a = '', b = '', c = ''] = ids
      const target = { id: crypto.randomUUID(), content: 'a, b and c', confidence: 0.7 }
      const sources = await repository.findByIds([a, b], ANN)
      const merge = { owner: ANN, jobId: 'j', consolidationType: 'merge', sources, target, halves: true }
      await repository.merges.merge(merge)
      await vectors.upsert('memories', [{ id: target.id, vector: [1], seq: 1 }])
      let isDown = true
      const removeVectors = async (gone: readonly string[]) => {
        if (isDown) throw new Error('the vector store is down')
        return vectors.remove('memories', gone)
      }
      const removal = new MemoryRemoval({ database, clock, removeVectors })
      assert.deepEqual(await removal.derivedFrom([a]), [target.id])
      assert.deepEqual(await new MemoryRemoval({ database, clock, removeVectors: async () => 0 }).forget(BOB, ids), {
        ...{ memories: [], derived: [], vectors: 0, isErased: true },
      })
      await assert.rejects(removal.forget(ANN, [a]), /is down/)
      assert.deepEqual(
        (await repository.findByIds([...ids, target.id], ANN)).map(({ id }) => id),
        [b, c],
      )
      // The vectors were noted in the same transaction, so the next call removes them.
      isDown = false
      assert.deepEqual(await removal.forget(ANN, []), { memories: [], derived: [], vectors: 2, isErased: true })
      assert.deepEqual([...vectors.stored.values()].map(({ id }) => id).toSorted(), [b, c].toSorted())
      // What remains can be merged again, and keeps the importance that it has.
      assert.equal(await repository.merges.find(ANN, 'merge', [b]), null)
      assert.deepEqual(await opened().importances([b]), [0.4])
    })

    test('a forgotten synthesis is not written again by the same consolidation', async () => {
      const { repository, remember, database, clock } = opened()
      const vectors = new MapVectors()
      const ids = await remember(vectors, ['d e f', 'f e d'])
      const sources = await repository.findByIds(ids, ANN)
      const target = { id: crypto.randomUUID(), content: 'd to f', confidence: 0.7 }
      const merge = { owner: ANN, jobId: 'k', consolidationType: 'merge', sources, target, halves: true }
      await repository.merges.merge(merge)
      const removal = new MemoryRemoval({ database, clock, removeVectors: (gone) => vectors.remove('memories', gone) })
      assert.partialDeepStrictEqual(await removal.forget(ANN, [target.id]), { memories: [target.id], derived: [] })
      assert.partialDeepStrictEqual(await repository.merges.merge(merge), { targetId: target.id })
      assert.deepEqual(await repository.findByIds([target.id], ANN), [])
    })

    test('the full text can be optimized', async () => {
      const { signal } = new AbortController()
      const fullText = memoriesFullText(opened().database)
      const report = await fullText.optimize({ threshold: 0.8, signal })
      assert.match(report.join(), name === 'SQLite' ? /merged the segments/ : /rows of memories are alive/)
      if (name === 'Postgres') {
        await opened().database.read('ANALYZE {memories}')
        assert.match(
          (await fullText.optimize({ threshold: 1.01, signal })).join(),
          /[1-9]\d* rows of memories are alive.*vacuumed$/,
        )
      }
      await assert.rejects(fullText.optimize({ threshold: 2, signal: AbortSignal.abort() }), { name: 'AbortError' })
    })
  })
}
