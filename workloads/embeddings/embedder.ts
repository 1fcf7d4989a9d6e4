import { OptionError } from '../../src/errors.ts'
import type { Vector } from './options.ts'
import { type Neighbour, type SearchOptions, type VectorStore, VectorsRefused } from './vector-store.ts'
import { readVector } from './vectors/entries.ts'

/** Turns texts into vectors. Errors decide what the queue does: `RetryAfter`, `NonRetryable` and `Offline` as in any handler. */
export interface Embedder {
  /** Kept with the vectors: those of two models cannot be compared. */
  readonly model: string
  /** Default: that of the first vector it returns. */
  readonly dimensions?: number
  /** The cosine similarity above which two texts are about the same; default: 0.8. It differs from model to model. */
  readonly threshold?: number
  /** One vector for each text, in order. */
  embedBatch(texts: readonly string[], call?: { readonly signal?: AbortSignal }): Promise<readonly Vector[]>
}

export const SIMILARITY_THRESHOLD = 0.8

/** Several while a namespace moves to another model: the one whose vectors it holds is used, or else the first. */
export type Embedders = Embedder | readonly Embedder[]

/** Refuses before any text is embedded where a namespace holds the vectors of a model that is not given here. */
export async function embedderFor(store: VectorStore, namespace: string, embedders: Embedders): Promise<Embedder> {
  const all = 'embedBatch' in embedders ? [embedders] : embedders
  const [first] = all
  if (first === undefined) throw new OptionError('no embedder was given; give one, such as hashEmbedder()')
  const model = (await store.modelOf?.(namespace)) ?? null
  const fitting = model === null ? first : all.find((embedder) => embedder.model === model)
  if (fitting !== undefined) return fitting
  throw new VectorsRefused(
    `the namespace '${namespace}' holds vectors of the model '${model}', and the embedder here is '${first.model}'; deploy that model's embedder, or move the namespace with 'embedding-reindex'`,
  )
}

/** One vector for each text, checked: a missing one would otherwise be stored as nothing, or for another text. */
export async function embedAll(
  embedder: Embedder,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<readonly Float32Array[]> {
  if (texts.length === 0) return []
  const vectors = await embedder.embedBatch(texts, signal === undefined ? {} : { signal })
  // One that does not heed the signal can answer long after another attempt, or a newer text, was stored.
  signal?.throwIfAborted()
  const count: unknown = Array.isArray(vectors) ? vectors.length : undefined
  if (count !== texts.length) {
    throw new VectorsRefused(
      `the embedder '${embedder.model}' returned ${count ?? 'no list of'} vectors for ${texts.length} texts; check the embedder`,
    )
  }
  const checked = vectors.map((vector, index) => readVector(vector, `vector ${index} of '${embedder.model}'`))
  const dimensions = embedder.dimensions ?? checked[0]?.length
  const other = checked.find(({ length }) => length !== dimensions)
  if (other === undefined) return checked
  throw new VectorsRefused(
    `the embedder '${embedder.model}' returned a vector of ${other.length} dimensions instead of ${dimensions}; check the embedder`,
  )
}

/**
 * The entries whose text is nearest in meaning, as far as the embedder understands it. Goes on without a pause while the
 * namespace moves from one of the embedders' models to another.
 *
 * @example
 * const found = await searchText(vectors, embedder, 'documents', 'how do I restart a worker?', { limit: 5 })
 */
export async function searchText(
  store: VectorStore,
  embedders: Embedders,
  namespace: string,
  text: string,
  options: SearchOptions & { readonly signal?: AbortSignal } = {},
): Promise<readonly Neighbour[]> {
  const { signal, ...search } = options
  const embedder = await embedderFor(store, namespace, embedders)
  const [vector] = await embedAll(embedder, [text], signal)
  if (vector === undefined) return []
  try {
    return await store.search(namespace, vector, { ...search, model: embedder.model })
  } catch (error) {
    // The namespace may have moved to the other model between the two calls.
    const next = await embedderFor(store, namespace, embedders)
    if (next === embedder) throw error
    return searchText(store, embedders, namespace, text, options)
  }
}
