import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VECTOR_PLACES } from '../../../test/fixtures/workload-places.ts'
import { SqliteVectors } from './sqlite.ts'
import { openVectorStore, SqlVectorStore } from './store.ts'

test('the memory of a search grows with what is searched', async () => {
  const place = await VECTOR_PLACES[0].makePlace()
  const store = await openVectorStore(place.url, { cacheBytes: 4_000_000 })
  const vector = Array.from({ length: 16_000 }, () => 1)
  await store.upsert('few', [{ id: 'a', vector }])
  assert.equal((await store.namespace('few'))?.search, 'exact, in memory')
  const before = process.memoryUsage().arrayBuffers
  await store.search('few', vector)
  assert.ok(process.memoryUsage().arrayBuffers - before < 4_000_000)
  const many = Array.from({ length: 70 }, (_, index) => ({ id: `${index}`, vector }))
  await store.upsert('few', many)
  assert.notEqual((await store.namespace('few'))?.search, 'exact, in memory', 'beyond what is allowed')
  await store.close()
  await place.remove()
})

test('on SQLite a row that takes the number of a removed one during a search is not found in its place', async () => {
  const place = await VECTOR_PLACES[0].makePlace()
  const store = await openVectorStore(place.url)
  await store.upsert('n', [
    { id: 'first', vector: [1, 1], metadata: { tenant: 'a' } },
    { id: 'last', vector: [1, 0], metadata: { tenant: 'a' } },
  ])
  let between: (() => Promise<unknown>) | null = null
  const { database } = store
  const paused = Object.create(database, {
    read: {
      value: async (sql: string, values: readonly string[]) => {
        const run = sql.includes('SELECT id, metadata') ? between : null
        if (run !== null) between = null
        await run?.()
        return database.read(sql, values)
      },
    },
  })
  const searching = new SqlVectorStore(paused, new SqliteVectors(paused, { cacheBytes: 1_000_000, extension: false }))
  for (const filter of [{ tenant: 'a' }, {}]) {
    between = async () => {
      await store.remove('n', ['last'])
      await store.upsert('n', [{ id: 'theirs', vector: [0, 1], metadata: { tenant: 'b' } }])
    }
    const found = await searching.search('n', [1, 0], { filter, scoreMin: 0.1 })
    assert.equal(between, null, 'it happened during the search')
    assert.deepEqual(
      found.map(({ id }) => id),
      ['first'],
    )
    await store.remove('n', ['theirs'])
    await store.upsert('n', [{ id: 'last', vector: [1, 0], metadata: { tenant: 'a' } }])
  }
  await store.close()
  await place.remove()
})
