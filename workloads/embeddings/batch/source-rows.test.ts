import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { drain, openForTest } from '../../../src/testing/index.ts'
import { WORKLOAD_PLACES, type WorkloadPlace } from '../../../test/fixtures/workload-places.ts'
import { textOf } from '../../database/columns.ts'
import { openDatabase, type Statement, type WorkloadDatabase } from '../../database/database.ts'
import { stableUuid } from '../uuid.ts'
import { openVectorStore, type SqlVectorStore } from '../vectors/store.ts'
import { itemsOf, ScriptedEmbedder, WatchedWorker } from './rig.ts'
import { type SourceColumn, SourceRows } from './source-rows.ts'

const uuidOf = (index: number): string => stableUuid('source', String(index))

/** The vectors are on SQLite for both: here the rows that they come from are looked at. */
for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`source rows on ${name}`, () => {
    let [place, vectorPlace]: [WorkloadPlace | null, WorkloadPlace | null] = [null, null]
    let database: WorkloadDatabase
    let store: SqlVectorStore
    let table = 'documents'
    const statements: Statement[] = []
    let isDown = false
    before(async () => {
      place = await makePlace()
      vectorPlace = await WORKLOAD_PLACES[0].makePlace()
      store = await openVectorStore(vectorPlace.url)
      database = await openDatabase(place.url, { schemas: [] })
      const id = name === 'SQLite' ? 'TEXT' : 'UUID'
      await database.write([{ sql: `CREATE TABLE {documents} (id ${id} PRIMARY KEY, embedding_id ${id}, note TEXT)` }])
      // On Postgres the tests' schema is not in the search path, so the allow-list names it.
      const schema = new URL(place.url).searchParams.get('schema')
      table = schema === null ? 'documents' : `${schema}.documents`
      for (let index = 0; index < 71; index += 1) {
        await database.write([{ sql: 'INSERT INTO {documents} (id) VALUES ($1)', values: [uuidOf(index)] }])
      }
    })
    after(async () => {
      await store.close()
      await database.close()
      await vectorPlace?.remove()
      await place?.remove()
    })

    const run = async (data: object, sources: readonly SourceColumn[], embedder = new ScriptedEmbedder()) => {
      const write: WorkloadDatabase['write'] = (given) => {
        statements.push(...given)
        if (isDown) throw new Error('the tables are locked')
        return database.write(given)
      }
      const worker = new WatchedWorker(embedder, store, { dialect: database.dialect, write }, { sources })
      await using stage = await openForTest()
      const items = itemsOf(70).map((item, index) => ({ ...item, sourceId: uuidOf(index) }))
      const payload = { items, namespace: 'docs', ...data }
      statements.length = 0
      const { id } = await stage.mill.enqueue(worker.definition, payload)
      await drain(stage.mill, [worker.definition])
      return (await stage.mill.jobs()).find((job) => job.id === id)
    }
    const linked = async () =>
      (await database.read('SELECT id, embedding_id FROM {documents} WHERE embedding_id IS NOT NULL')).map((row) => [
        textOf(row, 'id'),
        textOf(row, 'embedding_id'),
      ])
    const column = (): SourceColumn => ({ table, column: 'embedding_id' })

    // A102
    test('without both a table and a column no row is written', async () => {
      for (const data of [{}, { updateTable: table }, { updateColumn: 'embedding_id' }]) {
        const view = await run({ ...data, namespace: `none ${Object.keys(data).join('')}` }, [column()])
        assert.deepEqual([view?.state, statements.length], ['completed', 0])
      }
      assert.deepEqual(await linked(), [])
    })

    // X049
    test('a pair that is not listed is refused before anything is embedded or written', async () => {
      const hostile = `documents SET note = 'x'; DROP TABLE documents; --`
      const pairs = [
        [hostile, 'embedding_id'],
        [table, 'note'],
        [table, `embedding_id" = NULL, "note`],
        [table, 'EMBEDDING_ID'],
      ]
      for (const [updateTable, updateColumn] of pairs) {
        const embedder = new ScriptedEmbedder()
        const view = await run({ namespace: 'refused', updateTable, updateColumn }, [column()], embedder)
        assert.equal(view?.state, 'dead_letter')
        assert.match(view?.error?.message ?? '', /may not write the column .* add the pair to the worker's 'sources'/)
        assert.deepEqual([embedder.calls.length, statements.length], [0, 0])
      }
      assert.throws(() => new SourceRows(database, [{ table: 'a"b', column: 'c' }]), { code: 'ERR_OPTION_INVALID' })
      assert.throws(() => new SourceRows(null, [{ table: 'a', column: 'c' }]), /without a database/)
    })

    // A102 X049
    test('with both, each batch sets the ids of its rows in one statement, with quoted names', async () => {
      const view = await run({ updateTable: table, updateColumn: 'embedding_id' }, [column()])
      assert.equal(view?.state, 'completed')
      assert.equal(statements.length, 3)
      for (const { sql } of statements) {
        assert.match(sql, /SET "embedding_id" = u\.embedding_id/)
        if (name === 'Postgres') assert.match(sql, /UNNEST\(\$1::uuid\[\], \$2::uuid\[\]\) AS u\(id, embedding_id\)/)
      }
      const expected = Array.from({ length: 70 }, (_, index) => [uuidOf(index), stableUuid('docs', uuidOf(index))])
      assert.deepEqual((await linked()).sort(), expected.sort())
    })

    // X051
    test('where the rows could not be written, the next attempt writes them and embeds nothing again', async () => {
      await database.write([{ sql: 'UPDATE {documents} SET embedding_id = NULL' }])
      const data = { namespace: 'late', updateTable: table, updateColumn: 'embedding_id' }
      isDown = true
      const failed = await run(data, [column()])
      isDown = false
      assert.equal(failed?.state, 'queued')
      assert.match(failed?.error?.message ?? '', /70 of 70 items are not finished .* the tables are locked/)
      assert.deepEqual([(await linked()).length, (await store.namespace('late'))?.count], [0, 70])
      const embedder = new ScriptedEmbedder()
      const view = await run(data, [column()], embedder)
      assert.deepEqual([view?.state, embedder.calls.length, (await linked()).length], ['completed', 0, 70])
      assert.equal((await store.namespace('late'))?.count, 70)
    })

    test('an id that the column cannot hold is refused before anything is embedded', async (context) => {
      if (name === 'SQLite') return context.skip('a column of SQLite holds any text')
      const embedder = new ScriptedEmbedder()
      const data = { items: itemsOf(1), namespace: 'ids', updateTable: table, updateColumn: 'embedding_id' }
      const view = await run(data, [column()], embedder)
      assert.deepEqual([view?.state, embedder.calls.length], ['dead_letter', 0])
      assert.match(view?.error?.message ?? '', /'s0' is not a UUID/)
    })
  })
}

test('ids of text are compared as text, whatever characters they have', async () => {
  const place = await WORKLOAD_PLACES[1].makePlace()
  const database = await openDatabase(place.url, { schemas: [] })
  await database.write([{ sql: 'CREATE TABLE {notes} (key TEXT PRIMARY KEY, vector TEXT)' }])
  const id = `a"b\\c{},'d`
  await database.write([{ sql: 'INSERT INTO {notes} VALUES ($1, NULL)', values: [id] }])
  const table = `${new URL(place.url).searchParams.get('schema')}.notes`
  const rows = new SourceRows(database, [{ table, column: 'vector', id: 'key', type: 'text' }])
  await rows.target({ updateTable: table, updateColumn: 'vector' })?.update([{ id, embeddingId: 'e"1' }])
  assert.deepEqual(await database.read('SELECT * FROM {notes}'), [{ key: id, vector: 'e"1' }])
  await database.close()
  await place.remove()
})
