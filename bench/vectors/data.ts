/** Vectors in clusters, as texts about the same subjects have them, the same in every run. */
import { seededRandom } from '../../src/testing/open-for-test.ts'
import type { VectorEntry } from '../../workloads/embeddings/index.ts'

export const DIMENSIONS = 384
const CLUSTERS = 1_000
/** How far the vectors of a cluster lie apart, against the length of its centre. */
const SPREAD = 0.8
const GROUPS = 100

function directions(count: number, seed: number): readonly Float32Array[] {
  const random = seededRandom(seed)
  // The sum of three is close enough to a normal distribution.
  const one = (): number => random() + random() + random() - 1.5
  return Array.from({ length: count }, () => Float32Array.from({ length: DIMENSIONS }, one))
}

const centres = directions(CLUSTERS, 1)

function near(index: number, noise: Float32Array): Float32Array {
  const centre = centres[index % CLUSTERS] ?? new Float32Array(DIMENSIONS)
  return noise.map((value, place) => (centre[place] ?? 0) + value * SPREAD)
}

export function entriesOf(start: number, count: number): readonly VectorEntry[] {
  return directions(count, 1_000 + start).map((noise, offset) => {
    const index = start + offset
    return { id: `v${index}`, vector: near(index * 7, noise), seq: 1, metadata: { group: index % GROUPS } }
  })
}

export function queriesOf(count: number): readonly Float32Array[] {
  return directions(count, 2).map((noise, index) => near(index * 13, noise))
}
