import { z } from 'zod'
import { halfwayAtLimit } from '../embeddings/patience.ts'
import { BaseWorker, type WorkerJob, type WorkerOutlets } from '../framework/index.ts'
import { MemoryRemoval } from './removal.ts'
import type { MemoryRepository } from './repository.ts'
import type { MemoryVectors } from './vectors.ts'

/**
 * Not `embedding-batch`, whose payload holds the texts: a queue keeps payloads, and a text that is forgotten must not stay
 * there.
 */
export const MEMORY_EMBEDDING = 'memory-embedding'

/** What `remember` puts into one job. */
export const EMBEDDED_AT_ONCE = 500

const name = z.string().min(1).max(200)

const embeddingPayload = z.strictObject({
  workspaceId: name,
  userId: name,
  memoryIds: z.array(name).min(1).max(EMBEDDED_AT_ONCE),
})

export type MemoryEmbeddingData = z.infer<typeof embeddingPayload>

export interface MemoryEmbeddingResult {
  readonly memoriesEmbedded: number
  /** They had their vector already. */
  readonly memoriesUnchanged: number
  /** Ids that the owner has no memory for, such as forgotten ones. */
  readonly memoriesUnknown: number
}

/**
 * Embeds memories that were saved, as they are when the job runs.
 *
 * @example
 * await mill.work([new MemoryEmbeddingWorker(repository, vectors).definition])
 */
export class MemoryEmbeddingWorker extends BaseWorker<MemoryEmbeddingData, MemoryEmbeddingResult> {
  readonly #repository: MemoryRepository
  readonly #vectors: MemoryVectors
  readonly #removal: MemoryRemoval

  constructor(repository: MemoryRepository, vectors: MemoryVectors, outlets: WorkerOutlets = {}) {
    const options = { attempts: 5, backoff: { type: 'exponential', delay: 2_000 }, timeout: 60_000 } as const
    super(MEMORY_EMBEDDING, { payload: embeddingPayload, options }, outlets)
    this.#repository = repository
    this.#vectors = vectors
    this.#removal = new MemoryRemoval({
      database: repository.database,
      removeVectors: (ids) => vectors.remove(ids),
    })
  }

  async process(
    { workspaceId, userId, memoryIds }: MemoryEmbeddingData,
    { signal }: WorkerJob<MemoryEmbeddingData>,
  ): Promise<MemoryEmbeddingResult> {
    const ids = [...new Set(memoryIds)]
    const memories = await this.#repository.findByIds(ids, { workspaceId, userId })
    const missing = memories.filter(({ embeddingId }) => embeddingId === null)
    // Its versions were counted further, so the store would take the new vector for an old one.
    await this.#removal.removeFormer(
      missing.map(({ id }) => id),
      signal,
    )
    const memoriesEmbedded = await halfwayAtLimit((stored) => this.#vectors.index(missing, { signal, stored }))
    // A worker that died after it wrote a vector could not notice that the memory was forgotten.
    const contents = await this.#repository.contents(ids)
    const gone = ids.filter((_, at) => contents[at] === null)
    if (gone.length > 0) await this.#vectors.remove(gone)
    return {
      memoriesEmbedded,
      memoriesUnchanged: memories.length - missing.length,
      memoriesUnknown: ids.length - memories.length,
    }
  }
}
