export type {
  MemoryConsolidationData,
  MemoryConsolidationResult,
  SkippedMemory,
} from './consolidation/contract.ts'
export {
  type ConsolidatedMemories,
  type ConsolidationOptions,
  MemoryConsolidationWorker,
  type VectorsById,
} from './consolidation/worker.ts'
export {
  MEMORY_EMBEDDING,
  type MemoryEmbeddingData,
  type MemoryEmbeddingResult,
  MemoryEmbeddingWorker,
} from './embedding.ts'
export { type AnthropicLlmOptions, anthropicLlm, type OpenAiLlmOptions, openAiLlm } from './llm/apis.ts'
export type { CompletionOptions, Llm } from './llm/llm.ts'
export { localLlm } from './llm/local.ts'
export {
  type ConsolidationRequest,
  type Memories,
  type MemoriesOptions,
  memorySchedules,
  openMemories,
} from './memories.ts'
export { CONTENT_CHARS_MAX, type Memory, type NewMemory, type Owner } from './memory.ts'
export { MemoriesChanged, type Merge, type Merged, type Merges } from './merges.ts'
export { type ForgetOptions, type Forgotten, MemoryRemoval, type RemovalOptions } from './removal.ts'
export { type ListOptions, MemoryRepository } from './repository.ts'
export { memoriesSchema } from './schema.ts'
export type { FoundMemory, MemorySearch } from './search.ts'
export { type MemoryTablesOptions, openMemoryTables } from './tables.ts'
export { type MemoryCleanupData, type MemoryCleanupResult, MemoryCleanupWorker } from './upkeep/cleanup.ts'
export { type MemoryDecayData, type MemoryDecayResult, MemoryDecayWorker } from './upkeep/decay.ts'
export { memoriesFullText } from './upkeep/full-text.ts'
export { type EmbeddedMemory, MEMORIES_NAMESPACE, MemoryVectors, type MemoryVectorsOptions } from './vectors.ts'
