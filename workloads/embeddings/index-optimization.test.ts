import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { drain, openForTest } from '../../src/testing/index.ts'
import { VECTOR_PLACES } from '../../test/fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../test/servers/pgvector.ts'
import { numberOf } from '../database/columns.ts'
import { housekeepingSchedules } from '../framework/schedules.ts'
import { IndexOptimizationWorker, type Optimizable } from './index-optimization.ts'
import { openVectorStore } from './vectors/store.ts'

/** Runs one job as the schedule would. */
async function optimized(indexes: readonly Optimizable[], data: object = { threshold: 0.8 }) {
  await using stage = await openForTest()
  const { definition } = new IndexOptimizationWorker({ indexes })
  await stage.mill.enqueue(definition, data)
  await drain(stage.mill, [definition])
  const [view] = await stage.mill.jobs()
  return view
}

describe('index-optimization', () => {
  // A132
  test('takes the data of its schedule, and 0.8 without any', async () => {
    const calls: number[] = []
    const index = {
      name: 'mine',
      optimize: async ({ threshold }: { threshold: number }) => {
        calls.push(threshold)
        return ['done']
      },
    }
    const schedule = housekeepingSchedules.find(({ type }) => type === 'index-optimization')
    const view = await optimized([index], schedule?.payload as object)
    assert.deepEqual(view?.result, { threshold: 0.8, reports: [{ name: 'mine', done: ['done'] }] })
    await optimized([index], {})
    assert.deepEqual(calls, [0.8, 0.8])
    await assert.rejects(optimized([index], { threshold: 2 }), { code: 'ERR_PAYLOAD_INVALID' })
  })

  test('one index that fails leaves the others alone, and the job is retried', async () => {
    const done: string[] = []
    const good = (name: string) => ({ name, optimize: async () => [String(done.push(name))] })
    const bad = { name: 'bad', optimize: () => Promise.reject(new Error('no space left')) }
    const view = await optimized([good('a'), bad, good('b')])
    assert.deepEqual([view?.state, view?.error?.message, done], ['queued', 'no space left', ['a', 'b']])
  })
})

for (const { name, makePlace } of VECTOR_PLACES) {
  test(`the vectors on ${name} are tidied up when too many of them are gone, and are all still found`, async (context) => {
    const place = await makePlace()
    if (place === null) return context.skip(PGVECTOR_MISSING)
    const store = await openVectorStore(place.url, { migrate: true })
    const vectorOf = (index: number) => Array.from({ length: 64 }, (_, place) => Math.sin(index * 7 + place))
    const ids = Array.from({ length: 300 }, (_, index) => `v${index}`)
    await store.upsert(
      'docs',
      ids.map((id, index) => ({ id, vector: vectorOf(index) })),
    )
    const isDirty = async (): Promise<boolean> => {
      const sql =
        name === 'SQLite'
          ? 'SELECT freelist_count AS free FROM pragma_freelist_count'
          : `SELECT n_dead_tup AS free FROM pg_stat_user_tables WHERE schemaname = '${new URL(place.url).searchParams.get('schema')}' AND relname LIKE 'embedding_vectors%'`
      const [row] = await store.database.read(sql)
      return numberOf(row ?? {}, 'free') > 0
    }
    const clean = await optimized([store])
    assert.equal(await isDirty(), false)
    assert.doesNotMatch(JSON.stringify(clean?.result), /given back|rebuilt/)
    await store.remove('docs', ids.slice(0, 250))
    // Postgres counts dead rows a moment after the commit.
    while (!(await isDirty())) await store.database.read('SELECT 1')
    if (name === 'Postgres') {
      // As a rebuild leaves it that was interrupted.
      const sql = `CREATE INDEX left_over ON {embedding_vectors_1} (seq);
        UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{left_over}'::regclass`
      await store.database.write([{ sql }])
    }
    const view = await optimized([store])
    assert.equal(view?.state, 'completed')
    assert.match(
      JSON.stringify(view?.result),
      name === 'SQLite' ? /free pages given back/ : /250 dead rows of 300 removed, index rebuilt/,
    )
    if (name === 'Postgres') {
      const left = await store.database.read(`SELECT 1 FROM pg_class WHERE oid = to_regclass('{left_over}')`)
      assert.deepEqual(left, [])
    }
    const [found] = await store.search('docs', vectorOf(260))
    assert.deepEqual([found?.id, (await store.namespace('docs'))?.count], ['v260', 50])
    await store.close()
    await place.remove()
  })
}
