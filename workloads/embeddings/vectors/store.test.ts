import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { seededRandom } from '../../../src/testing/index.ts'
import { VECTOR_PLACES, type WorkloadPlace } from '../../../test/fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../../test/servers/pgvector.ts'
import { postgresServer, query } from '../../../test/servers/postgres.ts'
import type { Vector } from '../options.ts'
import { VectorsRefused } from '../vector-store.ts'
import { openVectorStore, type SqlVectorStore } from './store.ts'

/** Random directions, and those nearest to one of them by comparing all. */
function randomVectors(count: number, dimensions: number, random: () => number): readonly number[][] {
  return Array.from({ length: count }, () => Array.from({ length: dimensions }, () => random() - 0.5))
}

function cosine(one: Vector, other: Vector): number {
  let [product, ones, others] = [0, 0, 0]
  for (const [index, value] of one.entries()) {
    const against = other[index] ?? 0
    product += value * against
    ones += value * value
    others += against * against
  }
  return product / Math.sqrt(ones * others)
}

function nearest(vectors: readonly number[][], wanted: Vector, limit: number): readonly string[] {
  return vectors
    .map((vector, index) => ({ id: `v${index}`, score: cosine(vector, wanted) }))
    .sort((one, other) => other.score - one.score)
    .slice(0, limit)
    .map(({ id }) => id)
}

const idsOf = (found: readonly { readonly id: string }[]): readonly string[] => found.map(({ id }) => id)

for (const { name, makePlace } of VECTOR_PLACES) {
  describe(`vectors on ${name}`, () => {
    let place: WorkloadPlace | null
    let store: SqlVectorStore
    let other: SqlVectorStore
    before(async () => {
      place = await makePlace()
      if (place === null) return
      store = await openVectorStore(place.url, { migrate: true })
      other = await openVectorStore(place.url)
    })
    after(async () => {
      if (place === null) return
      await store.close()
      await other.close()
      await place.remove()
    })
    const it = (title: string, run: () => Promise<void>): void =>
      void test(title, async (context) => (place === null ? context.skip(PGVECTOR_MISSING) : run()))

    // X017
    it('an older version never replaces a newer one, in one call or in several', async () => {
      const write = (seq: number | null, x: number) =>
        store.upsert('versions', [{ id: 'a', vector: [x, 1], ...(seq !== null && { seq }) }])
      const stored = async () => (await store.get('versions', ['a']))[0]
      assert.deepEqual(await write(2, 2), [true])
      assert.deepEqual(await write(1, 1), [false])
      assert.deepEqual(await write(2, 9), [false], 'the same version was stored before')
      assert.deepEqual(await write(null, 9), [false], 'no version is older than any')
      assert.deepEqual([(await stored())?.seq, [...((await stored())?.vector ?? [])]], [2, [2, 1]])
      const both = [
        { id: 'a', vector: [4, 1], seq: 4 },
        { id: 'a', vector: [3, 1], seq: 3 },
      ]
      assert.deepEqual(await store.upsert('versions', both), [true, false])
      assert.equal((await stored())?.seq, 4)
      await store.upsert('versions', [{ id: 'b', vector: [1, 1], versionId: 'one' }])
      await store.upsert('versions', [{ id: 'b', vector: [1, 2], versionId: 'two', metadata: { n: 1 } }])
      const [b] = await store.get('versions', ['b'])
      assert.deepEqual([b?.versionId, b?.metadata], ['two', { n: 1 }], 'without versions the last write wins')
    })

    // X017
    it('of many versions that are written at once by two processes the newest stays', async () => {
      const seqs = Array.from({ length: 24 }, (_, index) => ((index * 7) % 24) + 1)
      await Promise.all(
        seqs.map((seq) => (seq % 2 === 0 ? store : other).upsert('race', [{ id: 'a', vector: [seq, 1], seq }])),
      )
      const [stored] = await store.get('race', ['a'])
      assert.deepEqual([stored?.seq, [...(stored?.vector ?? [])]], [24, [24, 1]])
      assert.equal((await store.namespace('race'))?.count, 1)
    })

    // X052
    it('vectors that do not fit are refused, and nothing of their call is stored', async () => {
      await store.upsert('fit', [{ id: 'a', vector: [1, 2, 3] }], { model: 'one' })
      const refused = (vectors: readonly Vector[], message: RegExp, model?: string) =>
        assert.rejects(
          store.upsert(
            'fit',
            vectors.map((vector, index) => ({ id: `n${index}`, vector })),
            model === undefined ? {} : { model },
          ),
          (error) => error instanceof VectorsRefused && message.test(error.message),
        )
      await refused([[1, 2]], /holds vectors of 3 dimensions, and these have 2/)
      await refused(
        [
          [1, 2, 3],
          [1, 2],
        ],
        /have 3 and 2 dimensions/,
      )
      await refused([[1, 2, 3]], /holds vectors of the model 'one', and these are of 'two'/, 'two')
      await refused(
        [
          [1, 2, 3],
          [1, Number.NaN, 3],
        ],
        /'n1' holds NaN at 1/,
      )
      await refused([[1, Number.POSITIVE_INFINITY, 3]], /holds Infinity/)
      await refused([[1e300, 1, 1]], /holds 1e\+300/)
      await refused([[0, 0, 0]], /nothing but zeros/)
      await refused([[]], /not a list of 1 to/)
      await assert.rejects(store.search('fit', [1, 2]), /3 dimensions, and these have 2/)
      await assert.rejects(store.search('fit', [1, 2, 3], { model: 'two' }), /of the model 'one'/)
      assert.equal((await store.namespace('fit'))?.count, 1)
    })

    it('vectors of any length that is allowed are found, and others are refused before they spoil a search', async () => {
      for (const [namespace, dimensions] of [
        ['lengths', 2],
        ['long', 2_100],
      ] as const) {
        const at = (angle: number, length: number) =>
          Array.from({ length: dimensions }, (_, index) => [Math.cos(angle), Math.sin(angle)].at(index) ?? 0).map(
            (part) => part * length,
          )
        const lengths = [9e14, 1e6, 1, 1e-9, 2e-15]
        await store.upsert(
          namespace,
          lengths.map((length, index) => ({ id: `${index}`, vector: at(index / 10, length) })),
        )
        for (const length of lengths) {
          const found = await store.search(namespace, at(0, length))
          assert.deepEqual(idsOf(found), ['0', '1', '2', '3', '4'], `${dimensions} dimensions, length ${length}`)
          assert.ok(found.every(({ score }, index) => Math.abs(score - Math.cos(index / 10)) < 1e-5))
        }
        for (const length of [1e30, 1e16, 1e-16, 1e-30]) {
          const message = { code: 'ERR_VECTORS', message: /has the length 1\.0e[+-]\d+ and may have/ }
          await assert.rejects(store.upsert(namespace, [{ id: 'x', vector: at(0, length) }]), message)
          await assert.rejects(store.search(namespace, at(0, length)), message)
        }
        assert.equal((await store.namespace(namespace))?.count, 5)
      }
    })

    it('the most similar is first, also where an index orders by 16-bit numbers', async () => {
      const random = seededRandom(3)
      const vectors = randomVectors(60, 2_100, random).map((vector) => vector.map((part) => 1 + part / 50))
      await store.upsert(
        'alike',
        vectors.map((vector, index) => ({ id: `v${index}`, vector })),
      )
      const scores = (await store.search('alike', vectors[0] ?? [], { limit: 40 })).map(({ score }) => score)
      assert.deepEqual(
        scores,
        scores.toSorted((one, other) => other - one),
      )
    })

    it('neighbours are found by similarity, filter, limit and least score', async () => {
      const entries = [
        { id: 'east', vector: [1, 0], metadata: { lang: 'en', n: 1, "it's": true } },
        { id: 'north-east', vector: [1, 1], metadata: { lang: 'de', n: 2 } },
        { id: 'north', vector: [0, 1], metadata: { lang: 'en', n: 1 } },
        { id: 'west', vector: [-1, 0], metadata: { lang: 'en', n: '1' } },
      ]
      await store.upsert('compass', entries)
      const search = async (options = {}) => idsOf(await store.search('compass', [2, 0.1], options))
      assert.deepEqual(await search(), ['east', 'north-east', 'north', 'west'])
      assert.deepEqual(await search({ limit: 2 }), ['east', 'north-east'])
      assert.deepEqual(await search({ filter: { lang: 'en' } }), ['east', 'north', 'west'])
      assert.deepEqual(
        await search({ filter: { lang: 'en', n: 1 } }),
        ['east', 'north'],
        'the text 1 is not the number',
      )
      assert.deepEqual(await search({ filter: { "it's": true } }), ['east'])
      assert.deepEqual(await search({ filter: { lang: 'fr' } }), [])
      assert.deepEqual(await search({ scoreMin: 0.5 }), ['east', 'north-east'])
      const [east, , , west] = await store.search('compass', [1, 0])
      assert.deepEqual([east?.score, west?.score, east?.metadata], [1, -1, { lang: 'en', n: 1, "it's": true }])
      assert.deepEqual(await store.search('nowhere', [1, 0]), [])
      await assert.rejects(store.search('compass', [1, 0], { limit: 0 }), { code: 'ERR_OPTION_INVALID' })
      for (const filter of [{ 'a"b': 1 }, null, 'en', ['en']] as readonly unknown[]) {
        const wrong = store.search('compass', [1, 0], { filter: filter as { lang: string } })
        await assert.rejects(wrong, { code: 'ERR_OPTION_INVALID' }, JSON.stringify(filter))
      }
    })

    it('a search follows what another process writes and removes', async () => {
      const seen = async () => idsOf(await store.search('follow', [1, 0]))
      await other.upsert('follow', [{ id: 'a', vector: [1, 0] }])
      assert.deepEqual(await seen(), ['a'])
      await other.upsert('follow', [
        { id: 'b', vector: [1, 0.1] },
        { id: 'c', vector: [1, 0.2] },
      ])
      assert.deepEqual(await seen(), ['a', 'b', 'c'])
      await other.upsert('follow', [{ id: 'a', vector: [0, 1] }])
      assert.deepEqual(await seen(), ['b', 'c', 'a'])
      assert.equal(await other.remove('follow', ['b', 'unknown']), 1)
      assert.deepEqual(idsOf(await store.search('follow', [1, 0.1], { limit: 1 })), ['c'], 'not counted any more')
      assert.deepEqual(await seen(), ['c', 'a'])
      await other.upsert('follow', [{ id: 'd', vector: [1, 0] }])
      assert.deepEqual(await seen(), ['d', 'c', 'a'])
      assert.deepEqual(await store.get('follow', ['b']), [null])
    })

    it('among many, a narrow filter and a wide one leave the right neighbours', async () => {
      const random = seededRandom(5)
      const vectors = randomVectors(1_500, 16, random)
      const entries = vectors.map((vector, index) => ({
        id: `v${index}`,
        vector,
        metadata: { even: index % 2 === 0, group: index % 100 },
      }))
      await store.upsert('many', entries)
      const [wanted = []] = randomVectors(1, 16, random)
      const found = await store.search('many', wanted, { limit: 10 })
      const missed = nearest(vectors, wanted, 10).filter((id) => !idsOf(found).includes(id))
      assert.ok(missed.length <= 1, `missed ${missed.join(', ')}`)
      const rare = await store.search('many', wanted, { limit: 20, filter: { group: 7 } })
      assert.deepEqual(rare.length, 15, 'every row that the filter leaves')
      const even = await store.search('many', wanted, { limit: 10, filter: { even: true } })
      assert.ok(even.length === 10 && even.every(({ metadata }) => metadata.even === true))
    })
  })
}

test('on SQLite every way to search finds exactly the nearest', async (context) => {
  const seed = Number(process.env.MILLRACE_SEED ?? Date.now() % 1_000_000)
  context.diagnostic(`MILLRACE_SEED=${seed}`)
  const random = seededRandom(seed)
  const vectors = randomVectors(3_000, 24, random)
  const place = await VECTOR_PLACES[0].makePlace()
  const writer = await openVectorStore(place.url)
  await writer.upsert(
    'v',
    vectors.map((vector, index) => ({ id: `v${index}`, vector, metadata: { even: index % 2 === 0 } })),
  )
  const ways = { 'exact, in memory': {}, 'exact, with sqlite-vec': { cacheBytes: 0 } }
  const scan = { 'exact, by reading all rows': { cacheBytes: 0, extension: false } }
  for (const [way, options] of Object.entries({ ...ways, ...scan })) {
    const store = await openVectorStore(place.url, options)
    assert.equal((await store.namespace('v'))?.search, way)
    for (const wanted of randomVectors(5, 24, random)) {
      assert.deepEqual(idsOf(await store.search('v', wanted)), nearest(vectors, wanted, 10), `${way}, seed ${seed}`)
      const even = vectors.map((vector, index) =>
        index % 2 === 0 ? vector : vector.map((value) => -1e9 * Math.abs(value)),
      )
      const found = idsOf(await store.search('v', wanted, { filter: { even: true }, limit: 5, scoreMin: 0.2 }))
      assert.ok(found.length > 0)
      assert.deepEqual(
        found,
        nearest(even, wanted, 1_500)
          .filter((id) => Number(id.slice(1)) % 2 === 0)
          .slice(0, found.length),
      )
    }
    await store.close()
  }
  await writer.close()
  await place.remove()
})

test('a Postgres without pgvector is refused, and the message says what to install', async (context) => {
  const { url } = await postgresServer()
  const installed = await query(url, `SELECT 1 FROM pg_available_extensions WHERE name = 'vector'`)
  if (installed.length > 0) return context.skip('this server has pgvector')
  const opened = openVectorStore(url, { migrate: true })
  await assert.rejects(opened, /needs pgvector 0\.8 or newer.*apt install postgresql-\d+-pgvector/)
})
