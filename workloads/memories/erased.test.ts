/** After memories are forgotten, no byte of their texts and vectors is in the file, its full-text index or its write-ahead log. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { drain } from '../../src/testing/drain.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { storeBytes } from '../../test/fixtures/store-bytes.ts'
import { tempFiles } from '../../test/fixtures/temp-files.ts'
import type { Embedder } from '../embeddings/embedder.ts'
import { openVectorStore } from '../embeddings/vectors/store.ts'
import { openMemories } from './memories.ts'
import { ANN, BOB } from './rig.ts'

const files = tempFiles()
const WORD = /card[1-9]\d{6}/g
const DIMENSIONS = 96

function wordsIn(bytes: Buffer): ReadonlySet<string> {
  return new Set(bytes.toString('latin1').match(WORD))
}

interface Written {
  readonly id: string
  readonly words: readonly string[]
}

/** Memories whose words differ from each other in the last digit often, and whose vectors are random. */
async function remembered(
  t: TestContext,
  { seed, count, vectorFile }: { seed: number; count: number; vectorFile?: string },
) {
  const random = seededRandom(seed)
  const vectors: Buffer[] = []
  const embedder: Embedder = {
    model: 'random',
    embedBatch: async (texts) =>
      texts.map(() => {
        const vector = Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5)
        // Its middle: a long row is spread over pages, so the whole stands nowhere in one piece.
        vectors.push(Buffer.from(vector.buffer.slice(160, 208)))
        return [...vector]
      }),
  }
  const file = files.next()
  const other = vectorFile === undefined ? null : await openVectorStore(`sqlite:${vectorFile}`)
  const memories = await openMemories({
    engine: `sqlite:${file}?synchronous=normal`,
    embedder,
    ...(other !== null && { vectors: other }),
  })
  t.after(async () => {
    await memories.close()
    await other?.close()
  })
  const written: Written[] = []
  for (let at = 0; at < count; at += 1) {
    const words = Array.from({ length: 30 }, () => `card${Math.floor(1e6 + random() * 1e6)}`)
    const { id } = await memories.remember({ ...(at % 3 === 0 ? ANN : BOB), content: words.join(' ') })
    written.push({ id, words })
  }
  await drain(memories.mill, memories.jobs, { concurrency: 1 })
  assert.equal(vectors.length, count)
  return { file, memories, written, vectors }
}

describe('an SQLite file', { timeout: 120_000 }, () => {
  for (const seed of [1, 2, 3]) {
    test(`has no word and no vector of forgotten memories (seed ${seed})`, async (t) => {
      const { file, memories, written, vectors } = await remembered(t, { seed, count: 450 })
      const isGone = (_: unknown, at: number): boolean => at % 3 === 0
      const kept = new Set(written.filter((_, at) => !isGone(_, at)).flatMap(({ words }) => words))
      const gone = written
        .filter(isGone)
        .flatMap(({ words }) => words)
        .filter((word) => !kept.has(word))
      const stored = storeBytes(file)
      const before = wordsIn(stored)
      assert.ok(
        gone.every((word) => before.has(word)),
        'the search finds words',
      )
      assert.ok(vectors.filter((vector) => stored.includes(vector)).length > 400, 'the search finds vectors')
      const forgotten = await memories.forget(
        ANN,
        written.filter(isGone).map(({ id }) => id),
      )
      assert.deepEqual([forgotten.memories.length, forgotten.vectors, forgotten.isErased], [150, 150, true])
      const left = storeBytes(file)
      const words = wordsIn(left)
      assert.deepEqual(
        gone.filter((word) => words.has(word)),
        [],
      )
      assert.equal(vectors.filter(isGone).filter((vector) => left.includes(vector)).length, 0)
      assert.ok([...kept].filter((word) => words.has(word)).length > 1_000)
      const [one] = written.filter((_, at) => at === 1)
      const found = await memories.search({ ...BOB, text: one?.words[0] ?? '', by: 'words', limit: 5 })
      assert.ok(found.some(({ memory }) => memory.id === one?.id))
    })
  }

  test('of vectors alone is rewritten too', async (t) => {
    const vectorFile = files.next()
    const { memories, written, vectors } = await remembered(t, { seed: 4, count: 30, vectorFile })
    assert.ok(vectors.every((vector) => storeBytes(vectorFile).includes(vector)))
    await memories.forget(
      ANN,
      written.filter((_, at) => at % 3 === 0).map(({ id }) => id),
    )
    const left = storeBytes(vectorFile)
    assert.deepEqual(
      vectors.map((vector) => left.includes(vector)),
      vectors.map((_, at) => at % 3 !== 0),
    )
  })

  test('that another process reads may still have them, which is returned, and the next call erases them', async (t) => {
    const { file, memories, written } = await remembered(t, { seed: 5, count: 6 })
    const ids = written.filter((_, at) => at % 3 === 0).map(({ id }) => id)
    const [word = ''] = written[0]?.words ?? []
    const reader = new DatabaseSync(file, { readOnly: true })
    t.after(() => reader.close())
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM memories').get()
    const first = await memories.forget(ANN, ids)
    assert.deepEqual([first.memories.length, first.isErased, storeBytes(file).includes(word)], [2, false, true])
    reader.exec('COMMIT')
    const second = await memories.forget(ANN, ids)
    assert.deepEqual([second.memories.length, second.isErased, storeBytes(file).includes(word)], [0, true, false])
  })

  test('has no text in its write-ahead log of what a cleanup has removed', async (t) => {
    const { file, memories } = await remembered(t, { seed: 7, count: 3 })
    await memories.remember({ ...ANN, content: 'quokka was here', expiresAt: new Date(0) })
    assert.ok(storeBytes(file).includes('quokka'))
    await memories.mill.enqueue('memory-cleanup', {})
    await drain(memories.mill, memories.jobs, { concurrency: 1 })
    assert.ok(!storeBytes(file).includes('quokka'), 'nothing is left')
  })

  test('is left to a later call where many owners are forgotten one after the other', async (t) => {
    const { file, memories, written } = await remembered(t, { seed: 6, count: 6 })
    const [[ann], [bob]] = [[written[0]], [written[1]]]
    const first = await memories.forget(ANN, [ann?.id ?? ''], { rewrite: false })
    const second = await memories.forget(BOB, [bob?.id ?? ''])
    assert.deepEqual([first.isErased, second.isErased], [false, true])
    const words = wordsIn(storeBytes(file))
    assert.deepEqual(
      [ann, bob].flatMap((one) => one?.words ?? []).filter((word) => words.has(word)),
      [],
    )
  })
})
