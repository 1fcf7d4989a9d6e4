export type { AccessOptions } from './access.ts'
export type { Database, RefusalCode, Row, ServiceResult } from './database.ts'
export type { FinishDetails, FinishedJob } from './finish.ts'
export { type TableRoutesOptions, tableRoutes } from './http/routes.ts'
export {
  type AtAttempt,
  type Fence,
  type HeldBy,
  type InTable,
  type JobTables,
  type JobTablesOptions,
  openJobTables,
} from './job-tables.ts'
export type { LeaseRenewer } from './lease-renewer.ts'
export type { LeasedJob } from './leases.ts'
export { type JobTableMetrics, jobTableMetrics } from './metrics.ts'
export { type MigrateOptions, migrateTables, type TablesPlan } from './migration.ts'
export type { ColumnValues, QueueAge } from './queue.ts'
export { type Reaped, Reaper, type ReaperOptions, type ReaperResult } from './reaper.ts'
export type { Republish, RequeuedJob } from './reaper-report.ts'
export {
  CountedMetrics,
  type ReaperCounter,
  type ReaperMeasure,
  type ReaperMetrics,
  type ReaperTags,
} from './reaper-report.ts'
export { type ReaperRun, type ReaperService, type ReaperServiceOptions, startReaper } from './service.ts'
export {
  deadlineMs,
  type Environment,
  factorOf,
  readTableSettings,
  requeueDelayMs,
  type SlaFactors,
  type Started,
  type TableSettings,
} from './settings.ts'
export { JOB_TABLES, type JobTable, type PlaceOptions } from './shape.ts'
