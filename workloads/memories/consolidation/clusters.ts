/** Groups memories by the similarity of their vectors, greedily and in the order given. */
import type { Vector } from '../../embeddings/options.ts'
import type { SkippedMemory } from './contract.ts'

export interface Comparable<Item> {
  readonly item: Item
  readonly vector: Vector
}

/** 0 for a vector of zeros, which has no direction. */
export function cosineSimilarity(one: Vector, other: Vector): number {
  let [product, oneSquared, otherSquared] = [0, 0, 0]
  for (let at = 0; at < one.length; at += 1) {
    const [a, b] = [one[at] ?? 0, other[at] ?? 0]
    product += a * b
    oneSquared += a * a
    otherSquared += b * b
  }
  const lengths = Math.sqrt(oneSquared) * Math.sqrt(otherSquared)
  return lengths === 0 ? 0 : product / lengths
}

/**
 * The first one that is in no cluster opens the next, and takes in every later one that is more similar to it than the
 * threshold. They are compared with the opener only, so two others of a cluster can be less similar to each other.
 */
export function clustersOf<Item>(all: readonly Comparable<Item>[], threshold: number): readonly (readonly Item[])[] {
  const clusters: (readonly Item[])[] = []
  let left = all
  for (let opener = left[0]; opener !== undefined; opener = left[0]) {
    const { item, vector } = opener
    const rest = left.slice(1)
    const isSimilar = (one: Comparable<Item>): boolean => cosineSimilarity(vector, one.vector) > threshold
    clusters.push([item, ...rest.filter(isSimilar).map((one) => one.item)])
    left = rest.filter((one) => !isSimilar(one))
  }
  return clusters
}

/** Those that can be compared with each other, and why the others cannot. The first vector decides the dimension. */
export function comparable<Item extends { readonly id: string }>(
  items: readonly Item[],
  vectors: ReadonlyMap<string, Vector>,
): { readonly comparable: readonly Comparable<Item>[]; readonly skipped: readonly SkippedMemory[] } {
  const found: Comparable<Item>[] = []
  const skipped: SkippedMemory[] = []
  for (const item of items) {
    const vector = vectors.get(item.id)
    const dimensions = found[0]?.vector.length ?? vector?.length
    if (vector === undefined || !vector.every(Number.isFinite)) skipped.push({ id: item.id, reason: 'no vector' })
    else if (vector.length !== dimensions) skipped.push({ id: item.id, reason: 'other dimension' })
    else found.push({ item, vector })
  }
  return { comparable: found, skipped }
}
