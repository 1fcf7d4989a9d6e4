export { type EmbeddingInput, type EmbeddingJob, ENTRY_TYPES, type EntryType, entryKey } from './entry.ts'
export { MemoryEmbeddings } from './memory-embeddings.ts'
export type { Embed, Embedding, EmbeddingQueueOptions, EmbeddingStore, Vector } from './options.ts'
export { createEmbeddingQueue, type EmbeddingQueue, type QueueStats } from './queue.ts'
