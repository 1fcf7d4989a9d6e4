export {
  type EmbeddingBatchData,
  type EmbeddingBatchResult,
  type EmbeddingItem,
  type EmbeddingResult,
  EmbeddingsIncomplete,
} from './batch/payload.ts'
export type { SourceColumn, SourceDatabase } from './batch/source-rows.ts'
export { type EmbeddingBatchOptions, EmbeddingBatchWorker } from './batch/worker.ts'
export { type Embedder, type Embedders, SIMILARITY_THRESHOLD, searchText } from './embedder.ts'
export { type FunctionEmbedderOptions, functionEmbedder } from './embedders/function.ts'
export { type HashEmbedderOptions, hashEmbedder } from './embedders/hash.ts'
export { type OpenAiEmbedderOptions, openAiEmbedder } from './embedders/openai.ts'
export { type EmbeddingInput, type EmbeddingJob, ENTRY_TYPES, type EntryType, entryKey } from './entry.ts'
export {
  type IndexOptimizationInput,
  type IndexOptimizationOptions,
  type IndexOptimizationResult,
  IndexOptimizationWorker,
  type Optimizable,
} from './index-optimization.ts'
export { MemoryEmbeddings } from './memory-embeddings.ts'
export type {
  Embed,
  Embedding,
  EmbeddingQueueOptions,
  EmbeddingStore,
  EntryRef,
  StoredVersion,
  Vector,
} from './options.ts'
export { createEmbeddingQueue, type EmbeddingQueue, type QueueStats } from './queue.ts'
export {
  type EmbeddingReindexData,
  type EmbeddingReindexOptions,
  type EmbeddingReindexResult,
  EmbeddingReindexWorker,
  type ReindexedEntry,
} from './reindex/worker.ts'
export type { Rescanned } from './rescan.ts'
export { stableUuid } from './uuid.ts'
export { embedWith, type VectorEmbeddingsOptions, vectorEmbeddings } from './vector-embeddings.ts'
export {
  type Metadata,
  type Neighbour,
  type OfModel,
  type SearchOptions,
  type StoredVector,
  type VectorEntry,
  type VectorStore,
  VectorsRefused,
} from './vector-store.ts'
export { embeddingsSchema } from './vectors/schema.ts'
export { type NamespaceInfo, openVectorStore, type SqlVectorStore, type VectorStoreOptions } from './vectors/store.ts'
