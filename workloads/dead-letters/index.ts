export type { DeadLetterEntry, EntryError, EntryFilter } from './entry.ts'
export {
  CRITICAL_JOB_TYPES,
  DeadLetterProcessor,
  isCriticalJobType,
  type ProcessorOptions,
  type RetriedJob,
} from './processor.ts'
export { type DeadLetterStorage, deskStorage } from './storage.ts'
