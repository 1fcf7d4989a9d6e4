import { type Embedder, embedAll } from './embedder.ts'
import { entryKey } from './entry.ts'
import type { Embed, Embedding, EmbeddingStore, EntryRef, StoredVersion } from './options.ts'
import type { VectorStore } from './vector-store.ts'

export interface VectorEmbeddingsOptions {
  readonly namespace: string
  /** The model of `embed`, so that vectors of another one are refused. Default: not checked. */
  readonly model?: string
}

/**
 * The vectors of the embedding queue in a vector store, which remembers versions when the queue is idle and when the process
 * has ended. The id of a vector is `entryKey(entryType, entryId)`, and its metadata are these two.
 *
 * @example
 * const queue = createEmbeddingQueue({
 *   embed: embedWith(embedder),
 *   store: vectorEmbeddings(vectors, { namespace: 'entries', model: embedder.model }),
 * })
 */
export function vectorEmbeddings(
  vectors: VectorStore,
  { namespace, model }: VectorEmbeddingsOptions,
): Required<EmbeddingStore> {
  return {
    async save({ entryType, entryId, versionId, seq, vector }: Embedding): Promise<boolean> {
      const entry = { id: entryKey(entryType, entryId), vector, versionId, seq, metadata: { entryType, entryId } }
      const [isWritten] = await vectors.upsert(namespace, [entry], model === undefined ? {} : { model })
      return isWritten ?? false
    },
    async stored(entries: readonly EntryRef[]): Promise<readonly (StoredVersion | null)[]> {
      const ids = entries.map(({ entryType, entryId }) => entryKey(entryType, entryId))
      const found = await vectors.get(namespace, ids)
      return found.map((one) => (one === null ? null : { seq: one.seq, versionId: one.versionId }))
    },
  }
}

/**
 * The `embed` of an embedding queue from an embedder.
 *
 * @example
 * const queue = createEmbeddingQueue({ embed: embedWith(hashEmbedder()), store })
 */
export function embedWith(embedder: Embedder): Embed {
  return async (content, { signal }) => {
    const [vector] = await embedAll(embedder, [content], signal)
    return vector ?? []
  }
}
