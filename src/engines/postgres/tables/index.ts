export type { AccessOptions } from './access.ts'
export type { Database, Row } from './database.ts'
export { deadlineMs, factorOf, type Started } from './deadline.ts'
export { type Environment, readTableSettings, type SlaFactors, type TableSettings } from './environment.ts'
export type { FinishDetails, FinishedJob } from './finish.ts'
export { JOB_TABLES, type JobTable, type PlaceOptions } from './job-table.ts'
export {
  type AtAttempt,
  type InTable,
  type JobTables,
  type JobTablesOptions,
  type KeepOptions,
  openJobTables,
} from './job-tables.ts'
export type { LeaseKeeper } from './lease-keeper.ts'
export type { LeasedJob } from './leases.ts'
export {
  CountedMetrics,
  type ReaperCounter,
  type ReaperMeasure,
  type ReaperMetrics,
  type ReaperTags,
} from './metrics.ts'
export { migrateTables, type TablesPlan } from './migration.ts'
export type { ColumnValues, QueueAge } from './queue.ts'
export { type Reaped, Reaper, type ReaperOptions, type ReaperResult } from './reaper.ts'
export { type ReaperService, startReaper } from './reaper-service.ts'
export type { Republish, RequeuedJob } from './report.ts'
export { requeueDelayMs } from './requeue-delay.ts'
export type { RefusalCode, ServiceResult } from './service-result.ts'
