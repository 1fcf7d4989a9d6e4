export { type GivenAlert, type WorkerAlert, workerAlert } from './alerts.ts'
export { BaseWorker, type WorkerConfig, type WorkerOutlets } from './base-worker.ts'
export type { DeadLetterEntry, EntryError, EntryFilter } from './dead-letters/entry.ts'
export { DeadLetterManager, type RetriedJob } from './dead-letters/manager.ts'
export { type DeadLetterStorage, deskStorage } from './dead-letters/storage.ts'
export { effectiveOptions, JOB_DEFAULTS, type JobDefaults, specOf, type TypeOptions } from './defaults.ts'
export { JobDispatcher } from './dispatcher.ts'
export type { EffectiveOptions } from './effective-options.ts'
export { METRICS_PREFIX, WorkerMetricsExporter } from './exporter.ts'
export type { Handled } from './handled.ts'
export { type WorkerHealthCheck, WorkerHealthChecker, workerHealthCheck } from './health.ts'
export { CRITICAL_JOB_TYPES, isCriticalJobType, isJobType, JOB_TYPES, type JobType } from './job-types.ts'
export type { Metrics, WorkerMetrics } from './metrics.ts'
export type { BackoffOption, JobConfig, JobOptions, Limiter } from './options.ts'
export { type QueueOptions, queueOf } from './queue.ts'
export { type SchedulerOptions, WorkerScheduler } from './scheduler.ts'
export {
  housekeepingSchedules,
  SCHEDULED_JOBS,
  type ScheduledJob,
  type ScheduledJobOptions,
  toSchedule,
} from './schedules.ts'
export { fromUrgency } from './urgency.ts'
export type { HookedJob, WorkerJob } from './worker-job.ts'
