import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VECTOR_PLACES } from '../../../test/fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../../test/servers/pgvector.ts'
import { embeddingBatchSchema } from '../batch/payload.ts'
import { openVectorStore } from './store.ts'

const refused = { code: 'ERR_OPTION_INVALID' }
/** Neither database gives these back as they are. */
const BROKEN = ['a\0', 'a\ud800', '\udc00a']
const ODD = [`a'b"c\\d`, 'a\nb', '{memories}', '$1', '\\u0000', '\\ud800', '\u2028', 'é', 'e\u0301', '😀', ' ']

for (const { name, makePlace } of VECTOR_PLACES) {
  test(`on ${name} names and metadata come back as they were given, or are refused`, async (context) => {
    const place = await makePlace()
    if (place === null) return context.skip(PGVECTOR_MISSING)
    const store = await openVectorStore(place.url, { migrate: true })
    const vector = [1, 0]
    for (const odd of ODD) {
      const entry = { id: odd, vector, versionId: odd, metadata: { text: odd, [odd]: 1 } }
      assert.deepEqual(await store.upsert(odd, [entry]), [true])
      assert.deepEqual(await store.get(odd, [odd]), [{ ...entry, seq: 0, vector: Float32Array.from(vector) }])
      assert.equal((await store.search(odd, vector, { filter: { text: odd } }))[0]?.id, odd)
    }
    for (const broken of BROKEN) {
      const metadatas = [{ text: broken }, { deep: [{ [broken]: 1 }] }]
      for (const metadata of metadatas)
        await assert.rejects(store.upsert('n', [{ id: 'a', vector, metadata }]), refused)
      await assert.rejects(store.upsert('n', [{ id: broken, vector }]), refused)
      await assert.rejects(store.upsert('n', [{ id: 'a', vector, versionId: broken }]), refused)
      await assert.rejects(store.upsert(broken, [{ id: 'a', vector }]), refused)
      await assert.rejects(store.search(' ', vector, { filter: { text: broken } }), refused)
      await assert.rejects(store.search(' ', vector, { filter: { [broken]: 1 } }), refused)
      assert.deepEqual(await store.get(' ', [broken, ' ']).then((found) => found.map((one) => one?.id)), [
        undefined,
        ' ',
      ])
      assert.equal(await store.remove(' ', [broken]), 0)
    }
    assert.equal((await store.namespaces()).length, ODD.length)
    await store.close()
    await place.remove()
  })
}

test('an option that is misspelt is refused: a search without its filter would find everything', async () => {
  const place = await VECTOR_PLACES[0].makePlace()
  const store = await openVectorStore(place.url)
  // @ts-expect-error: the name is 'filter'
  await assert.rejects(store.search('n', [1], { filters: { tenant: 'a' } }), /did you mean 'filter'/)
  // @ts-expect-error: the name is 'model'
  await assert.rejects(store.upsert('n', [{ id: 'a', vector: [1] }], { modell: 'm' }), /did you mean 'model'/)
  await store.close()
  await place.remove()
})

test('a job with texts that no store keeps is refused before anything is embedded', () => {
  const isTaken = (item: object, namespace = 'n'): boolean =>
    embeddingBatchSchema.safeParse({ items: [{ text: 't', sourceId: 's', ...item }], namespace }).success
  for (const odd of ODD) {
    assert.ok(isTaken({ sourceId: odd, embeddingId: odd, versionId: odd, metadata: { [odd]: odd } }, odd), odd)
  }
  for (const broken of BROKEN) {
    const items = [{ sourceId: broken }, { embeddingId: broken }, { versionId: broken }, { metadata: { a: [broken] } }]
    assert.deepEqual([...items.map((item) => isTaken(item)), isTaken({}, broken)], Array(5).fill(false))
    assert.ok(isTaken({ text: broken }), 'the text itself is not stored')
  }
})
