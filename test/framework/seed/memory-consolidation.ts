import { JOB_TYPES, type WorkerJob as Job, type WorkerOutlets } from 'millrace/workloads/framework'
import { RuvBotWorker } from './ruvbot-worker.ts'

export interface Memory {
  readonly id: string
  readonly type: string
  readonly content: string
  readonly importance: number
  readonly embeddingId?: string
  readonly sourceType?: string
  readonly sourceId?: string
  readonly metadata?: object
}

interface MemoryCluster {
  readonly memories: Memory[]
  readonly centroid: readonly number[]
}

export interface MemoryPorts {
  readonly memoryRepo: {
    findByIds(ids: readonly string[]): Promise<readonly Memory[]>
    save(memory: Memory): Promise<Memory>
    updateImportance(id: string, importance: number): Promise<void>
  }
  readonly vectorStore: {
    getById(id: string): Promise<readonly number[]>
    reindex(memories: readonly Memory[]): Promise<void>
  }
  readonly llm: {
    complete(prompt: string, options: { maxTokens: number; temperature: number }): Promise<{ readonly text: string }>
  }
}

interface MemoryConsolidationData {
  readonly workspaceId: string
  readonly userId: string
  readonly memoryIds: readonly string[]
  readonly consolidationType: 'merge' | 'summarize'
}

export class MemoryConsolidationWorker extends RuvBotWorker<MemoryConsolidationData, object> {
  private readonly memoryRepo: MemoryPorts['memoryRepo']
  private readonly vectorStore: MemoryPorts['vectorStore']
  private readonly llm: MemoryPorts['llm']

  constructor(
    memoryRepo: MemoryPorts['memoryRepo'],
    vectorStore: MemoryPorts['vectorStore'],
    llm: MemoryPorts['llm'],
    outlets: WorkerOutlets,
  ) {
    super(JOB_TYPES.MEMORY_CONSOLIDATION, { concurrency: 5, limiter: { max: 10, duration: 1000 } }, outlets)
    this.memoryRepo = memoryRepo
    this.vectorStore = vectorStore
    this.llm = llm
  }

  async process(data: MemoryConsolidationData, job: Job): Promise<object> {
    const { memoryIds, consolidationType } = data
    const memories = await this.memoryRepo.findByIds(memoryIds)
    if (memories.length < 2) {
      return { consolidated: false, reason: 'insufficient_memories' }
    }
    await job.updateProgress({ phase: 'analyzing', percent: 10 })
    const clusters = await this.clusterMemories(memories)
    await job.updateProgress({ phase: 'generating', percent: 40 })
    const consolidatedMemories: Memory[] = []
    for (const cluster of clusters) {
      if (cluster.memories.length < 2) continue
      const synthesis = await this.synthesizeCluster(cluster)
      const semanticMemory = await this.memoryRepo.save({
        id: crypto.randomUUID(),
        type: 'semantic',
        content: synthesis.content,
        importance: synthesis.importance,
        sourceType: 'consolidation',
        sourceId: job.id,
        metadata: {
          sourceMemoryIds: cluster.memories.map((m) => m.id),
          consolidationType,
          synthesisConfidence: synthesis.confidence,
        },
      })
      consolidatedMemories.push(semanticMemory)
      if (consolidationType === 'merge') {
        await Promise.all(cluster.memories.map((m) => this.memoryRepo.updateImportance(m.id, m.importance * 0.5)))
      }
    }
    await job.updateProgress({ phase: 'indexing', percent: 80 })
    await this.vectorStore.reindex(consolidatedMemories)
    await job.updateProgress({ phase: 'complete', percent: 100 })
    return {
      consolidated: true,
      clustersProcessed: clusters.length,
      memoriesCreated: consolidatedMemories.length,
      sourceMemoriesProcessed: memories.length,
    }
  }

  private async clusterMemories(memories: readonly Memory[]): Promise<MemoryCluster[]> {
    const embeddings = await Promise.all(memories.map((m) => this.vectorStore.getById(m.embeddingId ?? m.id)))
    const clusters: MemoryCluster[] = []
    const assigned = new Set<string>()
    for (const [i, memory] of memories.entries()) {
      if (assigned.has(memory.id)) continue
      const cluster: MemoryCluster = { memories: [memory], centroid: embeddings[i] ?? [] }
      assigned.add(memory.id)
      for (const [j, other] of memories.entries()) {
        if (j <= i || assigned.has(other.id)) continue
        if (cosineSimilarity(cluster.centroid, embeddings[j] ?? []) > 0.8) {
          cluster.memories.push(other)
          assigned.add(other.id)
        }
      }
      clusters.push(cluster)
    }
    return clusters
  }

  private async synthesizeCluster(cluster: MemoryCluster) {
    const prompt = `Merge into one fact:\n${cluster.memories.map((m, i) => `${i + 1}. ${m.content}`).join('\n')}`
    const response = await this.llm.complete(prompt, { maxTokens: 200, temperature: 0.3 })
    return {
      content: response.text.trim(),
      importance: Math.max(...cluster.memories.map((m) => m.importance)),
      confidence: cluster.memories.length >= 3 ? 0.9 : 0.7,
    }
  }
}

function cosineSimilarity(one: readonly number[], other: readonly number[]): number {
  const dot = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, x, at) => sum + x * (b[at] ?? 0), 0)
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other))
}
