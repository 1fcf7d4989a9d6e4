import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VECTOR_PLACES } from '../../../test/fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../../test/servers/pgvector.ts'
import { textOf } from '../../database/columns.ts'
import { NamespaceMove } from './move.ts'
import { openVectorStore, type SqlVectorStore } from './store.ts'
import { tableOf } from './tables.ts'

/** The ids in each generation of the store, in any state. */
async function idsIn({ generations, database }: SqlVectorStore): Promise<Readonly<Record<string, readonly string[]>>> {
  const ids: Record<string, readonly string[]> = {}
  for (const { generation, state } of await generations.all()) {
    const rows = await database.read(`SELECT id FROM ${tableOf(generation)} ORDER BY id`)
    ids[state] = rows.map((row) => textOf(row, 'id'))
  }
  return ids
}

for (const { name, makePlace } of VECTOR_PLACES) {
  describe(`removed vectors on ${name}`, () => {
    test('are gone from what a move is building, and from what a move has replaced', async (t) => {
      const place = await makePlace()
      if (place === null) return t.skip(PGVECTOR_MISSING)
      const store = await openVectorStore(place.url, { migrate: true })
      t.after(async () => {
        await store.close()
        await place.remove()
      })
      const entries = ['a', 'b', 'c'].map((id, at) => ({ id, vector: [1, at] }))
      await store.upsert('docs', entries, { model: 'old' })
      const move = new NamespaceMove(store, 'docs', 'new')
      const copy = async () => {
        const left = await move.next(0, 10, new Set())
        await move.put(
          3,
          left.map((entry) => ({ ...entry, vector: Float32Array.of(1, 2, 3) })),
        )
      }
      await copy()
      assert.deepEqual(await idsIn(store), { active: ['a', 'b', 'c'], building: ['a', 'b', 'c'] })
      assert.equal(await store.remove('docs', ['a']), 1)
      assert.deepEqual(await idsIn(store), { active: ['b', 'c'], building: ['b', 'c'] })
      assert.equal(await move.finish(new Set()), true)
      assert.equal(await store.remove('docs', ['b']), 1)
      assert.deepEqual(await idsIn(store), { retired: ['c'], active: ['c'] })
    })
  })
}
