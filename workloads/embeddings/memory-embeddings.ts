import { type EntryType, entryKey } from './entry.ts'
import type { Embedding, EmbeddingStore } from './options.ts'

/** Vectors in memory: for tests, and as an example of a conditional store. */
export class MemoryEmbeddings implements EmbeddingStore {
  readonly #byKey = new Map<string, Embedding>()

  save(embedding: Embedding): boolean {
    const key = entryKey(embedding.entryType, embedding.entryId)
    const stored = this.#byKey.get(key)
    if (stored !== undefined && stored.seq > embedding.seq) return false
    this.#byKey.set(key, embedding)
    return true
  }

  /** The stored vector, which may be of an older version: no read waits for the queue. */
  get(entryType: EntryType, entryId: string): Embedding | null {
    return this.#byKey.get(entryKey(entryType, entryId)) ?? null
  }

  delete(entryType: EntryType, entryId: string): boolean {
    return this.#byKey.delete(entryKey(entryType, entryId))
  }
}
