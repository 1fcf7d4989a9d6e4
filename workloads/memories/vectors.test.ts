import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VectorsRefused } from '../embeddings/vector-store.ts'
import { ANN, MapVectors, wordEmbedder, wordVector } from './rig.ts'
import { type EmbeddedMemory, MemoryVectors } from './vectors.ts'

const memory = (id: string, change: Partial<EmbeddedMemory> = {}): EmbeddedMemory => ({
  ...{ ...ANN, id, type: 'episodic', content: `memory ${id}`, version: 1, ...change },
})
const many = Array.from({ length: 70 }, (_, at) => memory(`m${at}`))

test('a memory that gets no usable vector does not keep the others from theirs', async () => {
  const store = new MapVectors()
  const calls: number[] = []
  const embedBatch = async (texts: readonly string[]) => {
    calls.push(texts.length)
    return texts.map((text) => (text === 'memory m40' ? wordVector('').map(() => Number.NaN) : wordVector(text)))
  }
  const vectors = new MemoryVectors({ store, embedder: { model: 'holes', embedBatch } })
  await assert.rejects(vectors.index(many), { code: 'ERR_VECTORS', message: /'holes' holds NaN/ })
  assert.equal(store.stored.size, 69)
  assert.deepEqual(calls, [32, 32, ...Array(32).fill(1), 6])
})

test('an embedder that fails otherwise fails the whole, and what is stored stays', async () => {
  const store = new MapVectors()
  let calls = 0
  const embedBatch = async (texts: readonly string[]) => {
    calls += 1
    if (calls === 2) throw new Error('overloaded')
    return texts.map(wordVector)
  }
  const vectors = new MemoryVectors({ store, embedder: { model: 'm', embedBatch } })
  await assert.rejects(vectors.index(many), /overloaded/)
  assert.equal(store.stored.size, 32)
  assert.equal(await vectors.index(many), 70)
})

test('each batch that is stored is told', async () => {
  let [calls, told] = [0, 0]
  const embedBatch = async (texts: readonly string[]) => {
    calls += 1
    if (calls === 3) throw new Error('too many')
    return texts.map(wordVector)
  }
  const vectors = new MemoryVectors({ store: new MapVectors(), embedder: { model: 'm', embedBatch } })
  await assert.rejects(vectors.index(many, { stored: () => (told += 1) }), /too many/)
  assert.equal(told, 2)
})

test('a vector of an older text changes nothing, and one of a forgotten memory is removed again', async () => {
  const store = new MapVectors()
  const mark = async (all: readonly EmbeddedMemory[]) => all.map(({ id }) => id).filter((id) => id !== 'gone')
  const vectors = new MemoryVectors({ store, embedder: wordEmbedder, mark })
  assert.equal(await vectors.index([memory('a', { version: 2, content: 'new' }), memory('gone')]), 1)
  await vectors.index([memory('a', { version: 1, content: 'old' })])
  assert.deepEqual([...store.stored.keys()], ['memories a'])
  assert.deepEqual([...((await store.get('memories', ['a']))[0]?.vector ?? [])], wordVector('new'))
})

test('too few vectors are refused', async () => {
  const embedder = { model: 'short', embedBatch: async () => [[1, 2]] }
  const vectors = new MemoryVectors({ store: new MapVectors(), embedder })
  await assert.rejects(vectors.index(many.slice(0, 2)), (error) => error instanceof VectorsRefused)
})
