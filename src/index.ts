export type { Enqueued, Mill } from './client/mill.ts'
export { open } from './client/mill.ts'
export type { MillOptions } from './client/options.ts'
export { type Desk, openDesk } from './desk/desk.ts'
export type { Transaction } from './engine/engine.ts'
export {
  type ErrorCode,
  isMillraceError,
  MillraceError,
  NonRetryable,
  Offline,
  Postpone,
  RetryAfter,
} from './errors.ts'
export type { MillEvents } from './events.ts'
export { explainJob } from './explain/explain.ts'
export type { Explanation } from './explain/explanation.ts'
export { graphOf } from './explain/graph.ts'
export { type Backoff, backoffMs } from './job/backoff.ts'
export {
  type AnyJob,
  defineJob,
  type HandledJob,
  type Handler,
  type JobContext,
  type JobDefinition,
  type Log,
} from './job/definition.ts'
export { redact } from './job/error-record.ts'
export type { JobView, Tenant } from './job/job.ts'
export { contentKey, type EnqueueOptions } from './job/options.ts'
export { isRetryable } from './job/policy.ts'
export type { ScheduleSpec } from './job/schedule.ts'
export type { JobState } from './job/states.ts'
export type { Keeper, KeeperOptions } from './keeper/keeper.ts'
export type { RetentionPolicy } from './keeper/retention.ts'
export { createLog } from './observe/log.ts'
export type { Duration } from './time/duration.ts'
export { currentJob, currentTenant } from './worker/context.ts'
export type { WorkerOptions } from './worker/options.ts'
export type { Worker } from './worker/worker.ts'
