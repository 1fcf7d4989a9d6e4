import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { clustersOf, cosineSimilarity } from './clusters.ts'

const vector = fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 3, maxLength: 3 })

/** The algorithm of the design, word for word. */
function asDesigned(vectors: readonly (readonly number[])[], threshold: number): readonly (readonly number[])[] {
  const clusters: number[][] = []
  const assigned = new Set<number>()
  for (let i = 0; i < vectors.length; i += 1) {
    if (assigned.has(i)) continue
    const cluster = [i]
    assigned.add(i)
    for (let j = i + 1; j < vectors.length; j += 1) {
      if (assigned.has(j)) continue
      if (cosineSimilarity(vectors[i] ?? [], vectors[j] ?? []) > threshold) {
        cluster.push(j)
        assigned.add(j)
      }
    }
    clusters.push(cluster)
  }
  return clusters
}

// A82 A83
test('clusters are those of the design, and each memory is in one', () => {
  fc.assert(
    fc.property(
      fc.array(vector, { maxLength: 30 }),
      fc.double({ min: -1, max: 1, noNaN: true }),
      (vectors, threshold) => {
        const clusters = clustersOf(
          vectors.map((one, item) => ({ item, vector: one })),
          threshold,
        )
        assert.deepEqual(clusters, asDesigned(vectors, threshold))
        assert.equal(new Set(clusters.flat()).size, vectors.length)
        assert.equal(clusters.flat().length, vectors.length)
      },
    ),
  )
})

test('the similarity of vectors is that of their directions', () => {
  assert.equal(cosineSimilarity([2, 0], [5, 0]), 1)
  assert.equal(cosineSimilarity([1, 0], [0, 3]), 0)
  assert.equal(cosineSimilarity([1, 1], [-1, -1]).toFixed(9), '-1.000000000')
  assert.equal(cosineSimilarity([0, 0], [1, 1]), 0)
})
