import { JOB_TYPES, type WorkerJob as Job, type WorkerOutlets } from 'millrace/workloads/framework'
import { RuvBotWorker } from './ruvbot-worker.ts'

interface EmbeddingItem {
  readonly sourceId: string
  readonly text: string
  readonly embeddingId?: string
  readonly metadata?: object
}

export interface EmbeddingPorts {
  readonly embedder: { embedBatch(texts: readonly string[]): Promise<readonly (readonly number[])[]> }
  readonly vectorStore: { upsert(namespace: string, entries: readonly object[]): Promise<void> }
  readonly db: { query(sql: string, values: readonly unknown[]): Promise<void> }
}

interface EmbeddingBatchData {
  readonly items: readonly EmbeddingItem[]
  readonly namespace: string
  readonly updateTable?: string
  readonly updateColumn?: string
}

interface EmbeddingResult {
  readonly sourceId: string
  readonly embeddingId: string | null
  readonly success: boolean
  readonly error?: string
}

export class EmbeddingBatchWorker extends RuvBotWorker<EmbeddingBatchData, object> {
  private readonly embedder: EmbeddingPorts['embedder']
  private readonly vectorStore: EmbeddingPorts['vectorStore']
  private readonly db: EmbeddingPorts['db']

  constructor(
    embedder: EmbeddingPorts['embedder'],
    vectorStore: EmbeddingPorts['vectorStore'],
    db: EmbeddingPorts['db'],
    outlets: WorkerOutlets,
  ) {
    super(JOB_TYPES.EMBEDDING_BATCH, { concurrency: 3, limiter: { max: 5, duration: 1000 } }, outlets)
    this.embedder = embedder
    this.vectorStore = vectorStore
    this.db = db
  }

  async process(data: EmbeddingBatchData, job: Job): Promise<object> {
    const { items, namespace, updateTable, updateColumn } = data
    const results: EmbeddingResult[] = []
    const batchSize = 32
    const totalBatches = Math.ceil(items.length / batchSize)
    for (let i = 0; i < items.length; i += batchSize) {
      const batch = items.slice(i, i + batchSize)
      const batchNum = Math.floor(i / batchSize) + 1
      await job.updateProgress({
        phase: 'embedding',
        batch: batchNum,
        totalBatches,
        percent: (batchNum / totalBatches) * 80,
      })
      try {
        const embeddings = await this.embedder.embedBatch(batch.map((item) => item.text))
        const entries = batch.map((item, idx) => ({
          id: item.embeddingId || crypto.randomUUID(),
          vector: embeddings[idx],
          metadata: item.metadata,
        }))
        await this.vectorStore.upsert(namespace, entries)
        const updates = batch.map((item, idx) => ({ id: item.sourceId, embeddingId: entries[idx]?.id ?? null }))
        if (updateTable && updateColumn) {
          await this.updateSourceRecords(updateTable, updateColumn, updates)
        }
        results.push(...updates.map(({ id, embeddingId }) => ({ sourceId: id, embeddingId, success: true })))
      } catch (error) {
        this.logger.warn(`Batch ${batchNum} failed`, { error: (error as Error).message })
        results.push(
          ...batch.map(({ sourceId }) => ({
            sourceId,
            embeddingId: null,
            success: false,
            error: (error as Error).message,
          })),
        )
      }
    }
    await job.updateProgress({ phase: 'complete', percent: 100 })
    return {
      total: items.length,
      succeeded: results.filter((r) => r.success).length,
      failed: results.filter((r) => !r.success).length,
      results,
    }
  }

  private async updateSourceRecords(
    table: string,
    column: string,
    updates: readonly { readonly id: string; readonly embeddingId: string | null }[],
  ): Promise<void> {
    await this.db.query(
      `UPDATE ${table} AS t SET ${column} = u.embedding_id FROM UNNEST($1::uuid[], $2::uuid[]) AS u(id, embedding_id) WHERE t.id = u.id`,
      [updates.map((u) => u.id), updates.map((u) => u.embeddingId)],
    )
  }
}
