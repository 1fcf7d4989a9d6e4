import { type Embedders, SIMILARITY_THRESHOLD } from '../../embeddings/embedder.ts'
import type { Vector } from '../../embeddings/options.ts'
import { halfwayAtLimit } from '../../embeddings/patience.ts'
import { stableUuid } from '../../embeddings/uuid.ts'
import type { VectorStore } from '../../embeddings/vector-store.ts'
import { BaseWorker, JOB_TYPES, type WorkerJob, type WorkerOutlets } from '../../framework/index.ts'
import type { Llm } from '../llm/llm.ts'
import type { Memory, NewMemory, Owner } from '../memory.ts'
import type { Merge, Merged, Merges } from '../merges.ts'
import { type EmbeddedMemory, MEMORIES_NAMESPACE, MemoryVectors } from '../vectors.ts'
import { clustersOf, comparable } from './clusters.ts'
import { consolidationPayload, type MemoryConsolidationData, type MemoryConsolidationResult } from './contract.ts'
import { readSynthesis, SYNTHESIS, synthesisPrompt } from './prompt.ts'

type Source = Pick<Memory, 'id' | 'content' | 'importance' | 'embeddingId'> & Partial<Pick<Memory, 'version'>>

/** What the worker needs of a repository. `MemoryRepository` has it all. */
export interface ConsolidatedMemories {
  findByIds(ids: readonly string[], owner: Owner): Promise<readonly Source[]>
  save(memory: NewMemory): Promise<unknown>
  updateImportance(id: string, importance: number, owner: Owner): Promise<unknown>
  /** Without it, the steps of a merge are separate calls, and a retry halves again. */
  readonly merges?: Pick<Merges, 'ofJob' | 'find' | 'merge'>
  markEmbedded?(memories: readonly EmbeddedMemory[]): Promise<readonly string[]>
}

/** A store of vectors without namespaces. */
export interface VectorsById {
  getById(id: string): Promise<Vector | null | undefined> | Vector | null | undefined
}

export interface ConsolidationOptions extends WorkerOutlets {
  /** Embeds the new memories. Without one they are saved and not indexed. Its `threshold` is that of the clusters. */
  readonly embedder?: Embedders
  /** Of the vector store; default: `memories`. */
  readonly namespace?: string
}

/**
 * Merges related memories of one user into semantic ones, with a language model. A retry, a second run and another job with
 * the same memories add nothing: see `Merges`.
 *
 * @example
 * const worker = new MemoryConsolidationWorker(repository, vectorStore, localLlm(), { embedder })
 * await mill.work([worker.definition])
 */
export class MemoryConsolidationWorker extends BaseWorker<MemoryConsolidationData, MemoryConsolidationResult> {
  readonly #memories: ConsolidatedMemories
  readonly #vectors: VectorStore | VectorsById
  readonly #llm: Llm
  readonly #namespace: string
  readonly #index: MemoryVectors | null

  constructor(
    memoryRepo: ConsolidatedMemories,
    vectorStore: VectorStore | VectorsById,
    llm: Llm,
    { embedder, namespace = MEMORIES_NAMESPACE, ...outlets }: ConsolidationOptions = {},
  ) {
    const limiter = { max: 10, duration: 1_000 }
    super(JOB_TYPES.MEMORY_CONSOLIDATION, { concurrency: 5, limiter, payload: consolidationPayload }, outlets)
    this.#memories = memoryRepo
    this.#vectors = vectorStore
    this.#llm = llm
    this.#namespace = namespace
    const mark = memoryRepo.markEmbedded?.bind(memoryRepo)
    this.#index =
      embedder === undefined || !('upsert' in vectorStore)
        ? null
        : new MemoryVectors({ store: vectorStore, embedder, namespace, ...(mark !== undefined && { mark }) })
  }

  process(data: MemoryConsolidationData, job: WorkerJob<MemoryConsolidationData>): Promise<MemoryConsolidationResult> {
    return halfwayAtLimit((stored) => this.#run(data, job, stored))
  }

  async #run(
    data: MemoryConsolidationData,
    job: WorkerJob<MemoryConsolidationData>,
    stored: () => void,
  ): Promise<MemoryConsolidationResult> {
    const { workspaceId, userId, memoryIds } = data
    const owner = { workspaceId, userId }
    const ids = [...new Set(memoryIds)]
    const memories = await this.#memories.findByIds(ids, owner)
    const memoriesUnknown = ids.length - memories.length
    if (memories.length < 2) return { consolidated: false, reason: 'insufficient_memories', memoriesUnknown }
    await job.updateProgress({ phase: 'analyzing', percent: 10 })
    const { clusters, earlier, skipped } = await this.#cluster(memories, job.id, owner)
    await job.updateProgress({ phase: 'generating', percent: 40 })
    const merged = [...earlier]
    for (const cluster of clusters.filter(({ length }) => length > 1)) {
      job.signal.throwIfAborted()
      const merge = await this.#consolidate(cluster, data, job)
      merged.push(merge)
      // Not for what another job has merged, nor without records, where the next run does it again.
      if (this.#memories.merges !== undefined && merge.jobId === job.id) stored()
    }
    await job.updateProgress({ phase: 'indexing', percent: 80 })
    const memoriesIndexed = await this.#indexed(merged, owner, job.signal)
    await job.updateProgress({ phase: 'complete', percent: 100 })
    const own = merged.filter(({ jobId }) => jobId === job.id)
    return {
      consolidated: true,
      clustersProcessed: clusters.length + earlier.length,
      clustersSkipped: clusters.filter(({ length }) => length < 2).length,
      clustersMergedBefore: merged.length - own.length,
      memoriesCreated: own.length,
      memoriesIndexed,
      sourceMemoriesProcessed: memories.length,
      ...{ memoriesUnknown, memoriesSkipped: skipped },
    }
  }

  /** Earlier attempts of this job have merged some: those stay together, also where their vectors have changed since. */
  async #cluster(memories: readonly Source[], jobId: string, owner: Owner) {
    const earlier = (await this.#memories.merges?.ofJob(jobId, owner)) ?? []
    const taken = new Set(earlier.flatMap(({ sourceIds }) => sourceIds))
    const left = memories.filter(({ id }) => !taken.has(id))
    const { comparable: compared, skipped } = comparable(left, await this.#vectorsOf(left))
    const threshold = (await this.#index?.threshold()) ?? SIMILARITY_THRESHOLD
    return { clusters: clustersOf(compared, threshold), earlier, skipped }
  }

  /** By the id of the memory. */
  async #vectorsOf(memories: readonly Source[]): Promise<ReadonlyMap<string, Vector>> {
    const embedded = memories.flatMap(({ id, embeddingId }) => (embeddingId ? [{ id, embeddingId }] : []))
    const vectors = await this.#read(embedded.map(({ embeddingId }) => embeddingId))
    return new Map(
      embedded.flatMap(({ id }, at) => {
        const vector = vectors[at]
        return vector === null || vector === undefined ? [] : [[id, vector]]
      }),
    )
  }

  async #read(ids: readonly string[]): Promise<readonly (Vector | null | undefined)[]> {
    const store = this.#vectors
    if ('getById' in store) return Promise.all(ids.map((id) => store.getById(id)))
    return (await store.get(this.#namespace, ids)).map((stored) => stored?.vector)
  }

  async #consolidate(
    cluster: readonly Source[],
    { workspaceId, userId, consolidationType }: MemoryConsolidationData,
    job: WorkerJob<MemoryConsolidationData>,
  ): Promise<Merged> {
    const owner = { workspaceId, userId }
    const { merges } = this.#memories
    const sourceIds = cluster.map(({ id }) => id)
    // Neither the model nor the tables are asked for what is known.
    const before = await merges?.find(owner, consolidationType, sourceIds)
    if (before !== null && before !== undefined) return before
    const merge = {
      ...{ owner, jobId: job.id, consolidationType, sources: cluster, halves: consolidationType === 'merge' },
      target: {
        id: stableUuid('memory-consolidation', job.id, ...sourceIds.toSorted()),
        content: await this.#synthesize(cluster, job),
        confidence: cluster.length >= 3 ? 0.9 : 0.7,
      },
    }
    return merges === undefined ? this.#mergeInSteps(merge) : merges.merge(merge)
  }

  async #synthesize(cluster: readonly Source[], job: WorkerJob<MemoryConsolidationData>): Promise<string> {
    const prompt = synthesisPrompt(cluster.map(({ content }) => content))
    if (prompt.shortened > 0) job.log.warn('Memories were shortened for the model', { count: prompt.shortened })
    const { text } = await this.#llm.complete(prompt.text, SYNTHESIS, { signal: job.signal })
    // A model that does not heed the signal can answer after the job was cancelled.
    job.signal.throwIfAborted()
    return readSynthesis(text, prompt)
  }

  /** For a repository without transactions: the new memory has the same id after a retry, but importances halve again. */
  async #mergeInSteps({ owner, jobId, consolidationType, sources, halves, target }: StepMerge): Promise<Merged> {
    const sourceIds = sources.map(({ id }) => id)
    await this.#memories.save({
      ...owner,
      ...{ id: target.id, type: 'semantic', content: target.content, sourceType: 'consolidation', sourceId: jobId },
      importance: Math.max(...sources.map(({ importance }) => importance)),
      metadata: { sourceMemoryIds: sourceIds, consolidationType, synthesisConfidence: target.confidence },
    })
    if (halves) {
      await Promise.all(
        sources.map(({ id, importance }) => this.#memories.updateImportance(id, importance * 0.5, owner)),
      )
    }
    return { targetId: target.id, sourceIds, jobId }
  }

  /** Returns how many of the new memories have a vector now. One that an earlier attempt could not write is written now. */
  async #indexed(merged: readonly Merged[], owner: Owner, signal: AbortSignal): Promise<number> {
    if (this.#index === null || merged.length === 0) return 0
    const targets = await this.#memories.findByIds(
      merged.map(({ targetId }) => targetId),
      owner,
    )
    const missing = targets.filter(({ embeddingId }) => !embeddingId)
    const indexed = await this.#index.index(
      missing.map(({ id, content, version = 1 }) => ({ ...owner, id, content, version, type: 'semantic' })),
      { signal },
    )
    return targets.length - missing.length + indexed
  }
}

interface StepMerge extends Merge {
  readonly sources: readonly Source[]
}
