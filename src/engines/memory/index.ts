export { MemoryEngine, type MemoryEngineOptions } from './engine.ts'
export { MemoryStore, type MemoryStoreOptions } from './store.ts'
