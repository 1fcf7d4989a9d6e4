/** The workers that the package has for the framework's types, on one database. */
import { NonRetryable } from '../../../src/errors.ts'
import type { AnyJob, Log } from '../../../src/job/definition.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import type { Duty } from '../../../src/keeper/side-duties.ts'
import type { MakeInstrument } from '../../../src/observe/metrics/instrument.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { parseDurationMs } from '../../../src/time/duration.ts'
import { openDatabase } from '../../database/database.ts'
import { EmbeddingBatchWorker } from '../../embeddings/batch/worker.ts'
import type { Embedder } from '../../embeddings/embedder.ts'
import { IndexOptimizationWorker } from '../../embeddings/index-optimization.ts'
import { EmbeddingReindexWorker } from '../../embeddings/reindex/worker.ts'
import { openVectorStore } from '../../embeddings/vectors/store.ts'
import type { Llm } from '../../memories/llm/llm.ts'
import { openMemoryParts } from '../../memories/memories.ts'
import { MEMORIES_NAMESPACE } from '../../memories/vectors.ts'
import { WebhookDispatchWorker } from '../../webhooks/dispatch-worker.ts'
import { webhookMetrics } from '../../webhooks/metrics.ts'
import { guardedHttp } from '../../webhooks/sending/guarded-http.ts'
import { removeOlder } from '../../webhooks/store/deliveries.ts'
import { WebhookRepository } from '../../webhooks/store/repository.ts'
import { webhooksSchema } from '../../webhooks/store/schema.ts'
import { RETENTION_DEFAULT, retentionDuty } from '../../webhooks/webhooks.ts'
import type { FrameworkSettings } from './config.ts'

export interface WorkersParts {
  /** A sqlite: or postgres: URL. */
  readonly database: string
  readonly settings: FrameworkSettings
  readonly embedder: Embedder
  readonly llm: Llm
  readonly clock: Clock
  readonly log: Log
}

export interface Workers {
  readonly jobs: readonly AnyJob[]
  readonly duties: readonly Duty[]
  readonly instruments: readonly MakeInstrument[]
  close(): Promise<void>
}

export async function openWorkers(parts: WorkersParts): Promise<Workers> {
  // Closed in reverse, also where opening the next one fails.
  await using ends = new AsyncDisposableStack()
  const webhooks = await openWebhookWorker(parts, ends)
  const embedding = await openEmbeddingWorkers(parts, ends)
  const opened = ends.move()
  return { ...webhooks, jobs: [...webhooks.jobs, ...embedding], close: () => opened.disposeAsync() }
}

async function openWebhookWorker({ database: url, settings, clock, log }: WorkersParts, ends: AsyncDisposableStack) {
  const { allow, retention = RETENTION_DEFAULT, ...options } = settings.webhooks ?? {}
  const retentionMs = parseDurationMs(retention, 'retention')
  const http = guardedHttp(omitUndefined({ allow, clock }))
  ends.defer(() => http.close())
  const database = await openDatabase(url, { schemas: [webhooksSchema], clock, usesIndexes: true })
  ends.defer(() => database.close())
  const repository = new WebhookRepository(database, { clock })
  ends.defer(() => repository.idle())
  const { metrics, instrument } = webhookMetrics()
  const worker = new WebhookDispatchWorker(http, repository, { ...options, metrics, log, clock })
  const retain = () => removeOlder(database, clock.nowMs() - retentionMs)
  return { jobs: [worker.definition], instruments: [instrument], duties: [retentionDuty(retain, log)] }
}

async function openEmbeddingWorkers(parts: WorkersParts, ends: AsyncDisposableStack): Promise<readonly AnyJob[]> {
  const { database, settings, embedder, llm, clock, log } = parts
  const vectors = await openVectorStore(database, { clock })
  ends.defer(() => vectors.close())
  const outlets = { clock, log }
  const memories = await openMemoryParts({ engine: database, embedder, vectors, model: llm, ...outlets })
  ends.defer(() => memories.close())
  const { sources = [] } = settings
  const batch = new EmbeddingBatchWorker(embedder, vectors, vectors.database, { sources, ...outlets })
  const reindex = new EmbeddingReindexWorker({
    ...{ store: vectors, embedder, ...outlets },
    async texts(entries, { namespace }) {
      if (namespace === MEMORIES_NAMESPACE) return memories.repository.contents(entries.map(({ id }) => id))
      throw new NonRetryable(
        `the texts of the namespace '${namespace}' are yours; give an EmbeddingReindexWorker with 'texts' in a module`,
      )
    },
  })
  const optimization = new IndexOptimizationWorker({ indexes: [...memories.indexes, vectors], ...outlets })
  return [...memories.jobs, batch.definition, reindex.definition, optimization.definition]
}
