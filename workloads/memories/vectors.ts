/** The vectors of memories, in one namespace of a vector store. Every vector names its owner, and every search filters by it. */
import { fieldOf } from '../../src/errors.ts'
import { BATCH_SIZE } from '../embeddings/batch/worker.ts'
import { type Embedders, embedAll, embedderFor, SIMILARITY_THRESHOLD, searchText } from '../embeddings/embedder.ts'
import type { Neighbour, VectorStore } from '../embeddings/vector-store.ts'
import type { Memory, Owner } from './memory.ts'

export const MEMORIES_NAMESPACE = 'memories'

export type EmbeddedMemory = Pick<Memory, 'id' | 'workspaceId' | 'userId' | 'type' | 'content' | 'version'>

export interface MemoryVectorsOptions {
  readonly store: VectorStore
  /** Several while the namespace moves to another model. */
  readonly embedder: Embedders
  /** Default: `memories`. */
  readonly namespace?: string
  /** Notes that the vectors are stored, and returns the ids of the memories that are still there. */
  readonly mark?: (memories: readonly EmbeddedMemory[]) => Promise<readonly string[]>
}

/**
 * Embeds, finds and removes the vectors of memories.
 *
 * @example
 * const mark = repository.markEmbedded.bind(repository)
 * const vectors = new MemoryVectors({ store: await openVectorStore(url), embedder: hashEmbedder(), mark })
 */
export class MemoryVectors {
  readonly #store: VectorStore
  readonly #embedders: Embedders
  readonly #namespace: string
  readonly #mark: NonNullable<MemoryVectorsOptions['mark']>

  constructor({ store, embedder, namespace = MEMORIES_NAMESPACE, mark }: MemoryVectorsOptions) {
    this.#store = store
    this.#embedders = embedder
    this.#namespace = namespace
    this.#mark = mark ?? (async (memories) => memories.map(({ id }) => id))
  }

  /** That of the model whose vectors are there. */
  async threshold(): Promise<number> {
    const { threshold } = await embedderFor(this.#store, this.#namespace, this.#embedders)
    return threshold ?? SIMILARITY_THRESHOLD
  }

  /**
   * Embeds memories and stores their vectors. Doing it again changes nothing. A memory that gets no usable vector does not
   * keep the others from theirs; then it throws at the end.
   */
  async index(memories: readonly EmbeddedMemory[], { signal, stored }: IndexCall = {}): Promise<number> {
    let indexed = 0
    const failures: unknown[] = []
    for (let start = 0; start < memories.length; start += BATCH_SIZE) {
      const batch = memories.slice(start, start + BATCH_SIZE)
      try {
        indexed += await this.#indexBatch(batch, signal)
        stored?.()
      } catch (error) {
        if (!isRefused(error)) throw error
        // One by one, so that only the refused ones fail.
        for (const memory of batch.length > 1 ? batch : []) {
          indexed += await this.#indexBatch([memory], signal).catch(onlyRefused)
        }
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    return indexed
  }

  async #indexBatch(memories: readonly EmbeddedMemory[], signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted()
    const embedder = await embedderFor(this.#store, this.#namespace, this.#embedders)
    const contents = memories.map(({ content }) => content)
    const vectors = await embedAll(embedder, contents, signal)
    await this.#store.upsert(
      this.#namespace,
      memories.map(({ id, workspaceId, userId, type, version }, at) => ({
        ...{ id, vector: vectors[at] ?? [], seq: version },
        metadata: { workspaceId, userId, type },
      })),
      { model: embedder.model },
    )
    const kept = new Set(await this.#mark(memories))
    // Forgotten while they were embedded: nothing else would remove these vectors.
    const gone = memories.filter(({ id }) => !kept.has(id)).map(({ id }) => id)
    if (gone.length > 0) await this.remove(gone)
    return kept.size
  }

  /** The nearest first. */
  search({ workspaceId, userId }: Owner, text: string, limits: Limits): Promise<readonly Neighbour[]> {
    const filter = { workspaceId, userId }
    return searchText(this.#store, this.#embedders, this.#namespace, text, { ...limits, filter })
  }

  /** Returns how many were there. */
  remove(ids: readonly string[]): Promise<number> {
    return this.#store.remove(this.#namespace, ids)
  }
}

export interface IndexCall {
  readonly signal?: AbortSignal
  /** Called after each batch whose vectors are stored. */
  readonly stored?: () => void
}

interface Limits {
  readonly limit: number
  readonly signal?: AbortSignal
}

function isRefused(error: unknown): boolean {
  return fieldOf(error, 'code') === 'ERR_VECTORS'
}

function onlyRefused(error: unknown): number {
  if (isRefused(error)) return 0
  throw error
}
