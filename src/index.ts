export type { Actor, Note } from './client/audit.ts'
export type { Flow, FlowStep } from './client/flow.ts'
export { type Enqueued, Mill, type MillOptions, open } from './client/mill.ts'
export type { BulkOptions, BulkOutcome, BulkProgress, Refusal } from './desk/bulk.ts'
export { type Acting, Desk, type DeskOptions, openDesk, type ShownLetter } from './desk/desk.ts'
export { fingerprint } from './desk/fingerprint.ts'
export type { LetterGroup } from './desk/groups.ts'
export type { Letter, LetterFilter, Selection } from './desk/selection.ts'
export type { Capabilities } from './engine/capabilities.ts'
export type {
  AuditAction,
  AuditEntry,
  AuditFilter,
  AuditNote,
  By,
  DeadLetter,
  DeadLetterFilter,
  DeadLetters,
  DeskAction,
  NotedAction,
  PayloadEdit,
} from './engine/dead-letters.ts'
export type { DiagnoseOptions, Finding } from './engine/diagnosis.ts'
export type {
  ClaimRequest,
  Consumer,
  Controls,
  Counts,
  Engine,
  Inspector,
  JobFilter,
  Receipt,
  SubscribedType,
  Subscription,
  Transaction,
  TypeCounts,
} from './engine/engine.ts'
export type { Leadership, Term } from './engine/leadership.ts'
export { MemoryPresence } from './engine/memory-presence.ts'
export type { Lease, Lost, LostReason, Outcome, Settlement } from './engine/outcome.ts'
export type { Pause, Pauses } from './engine/pauses.ts'
export type { AtWork, Beat, JobAtWork, Presence, RememberingPresence, Seen } from './engine/presence.ts'
export type { Finished, Retention, RetentionRule, Sweep, SweepStep } from './engine/retention.ts'
export type { ScheduleRecord, Schedules } from './engine/schedules.ts'
export {
  ClosedError,
  EngineError,
  type ErrorCode,
  JobEndedError,
  JobTimeoutError,
  LeaseLostError,
  MillraceError,
  NonRetryable,
  Offline,
  OptionError,
  PayloadError,
  PredecessorError,
  ResultError,
  RetryAfter,
  StoppingError,
  UnknownJobError,
  UnknownScheduleError,
  UnknownTypeError,
  UnsupportedError,
  WaitTimeoutError,
} from './errors.ts'
export type { AlertFacts, EventName, Events, JobFacts, MillEvents } from './events.ts'
export { type ExplainOptions, explainJob } from './explain/explain.ts'
export type { Because, ExplainedJob, Explanation } from './explain/explanation.ts'
export { type GraphNode, graphOf } from './explain/graph.ts'
export { type Backoff, backoffMs, backoffPresets, type Jitter } from './job/backoff.ts'
export {
  type AnyJob,
  defineJob,
  type Handler,
  type Hooks,
  type JobContext,
  type JobDefinition,
  type JobSpec,
  type Log,
  type RunningJob,
} from './job/definition.ts'
export { type Redactor, redact } from './job/error-record.ts'
export type {
  ErrorRecord,
  JobEvent,
  JobEventName,
  JobView,
  NewJob,
  Predecessors,
  StoredJob,
  StoredOptions,
  Tenant,
  TraceContext,
  TracedStart,
  Tracer,
  Tracing,
} from './job/job.ts'
export type { Ages, AgesMs, RemoveOption } from './job/keep.ts'
export type { EnqueueOptions, JobRef, Latest } from './job/options.ts'
export { contentKey } from './job/options.ts'
export { isRetryable } from './job/policy.ts'
export type { Predecessor } from './job/predecessors.ts'
export type { DeclaredSchedule, ScheduledOptions, SchedulePlan, ScheduleSpec } from './job/schedule.ts'
export { JOB_STATES, type JobState } from './job/states.ts'
export { fromUrgency } from './job/urgency.ts'
export type { Keeper, KeeperOptions } from './keeper/keeper.ts'
export { housekeepingSchedules } from './keeper/presets.ts'
export type { RetentionPolicy } from './keeper/retention.ts'
export type { ScheduleView } from './keeper/schedule.ts'
export { type NamedSchedule, Timetable } from './keeper/timetable.ts'
export { type Alerting, type AlertingOptions, startAlerting } from './observe/alerting/alerting.ts'
export type { AlertNotice, AlertState } from './observe/alerting/evaluator.ts'
export { checkAlerts, type FigureAlert, type FigureLimits, figureRules } from './observe/alerting/figure-rules.ts'
export { type HealthRuleOptions, healthRules } from './observe/alerting/health-rules.ts'
export type { AlertRule, Breach, Sample as AlertSample } from './observe/alerting/rule.ts'
export { type AlertSink, logSink, type WebhookOptions, webhookSink } from './observe/alerting/sinks.ts'
export { watchRules } from './observe/alerting/watch-rules.ts'
export { type Alert, type Alerter, attachAlerts } from './observe/alerts.ts'
export { attachFigures, type Figured, type KeyFigures } from './observe/figures/collect.ts'
export type { EndedFigures, Figures, StoredFigures } from './observe/figures/figures.ts'
export { checkHealth, type Examined, type HealthOptions } from './observe/health/check.ts'
export {
  type ActuatorComponent,
  type ActuatorHealth,
  actuatorHealth,
  type WorkerHealthCheck,
  workerHealthCheck,
} from './observe/health/forms.ts'
export type { Health, HealthChecks, HealthDetails, HealthStatus, HealthWord } from './observe/health/health.ts'
export {
  type Connectivity,
  type WatchHealthRules,
  watchHealth,
  withComponents,
} from './observe/health/watch.ts'
export { createLog, type LogOptions, silentLog } from './observe/log.ts'
export type { Metrics } from './observe/metrics/collector.ts'
export { attachMetrics, type Measured, type MetricsOptions, type MillMetrics } from './observe/metrics/metrics.ts'
export type { TableMetrics } from './observe/metrics/tables.ts'
export { attachWatchMetrics, type WatchMetrics, type WatchMetricsOptions } from './observe/metrics/watch.ts'
export { attachPresence, type PresenceOptions } from './observe/presence.ts'
export { attachTracing, type Traced } from './observe/tracing/tracing.ts'
export {
  type Alarm,
  type AlarmName,
  type AlarmRules,
  type ArrivalOptions,
  attachArrivalAlarms,
  evaluateAlarms,
} from './observe/watch/alarms.ts'
export { type Condition, type ConditionName, conditionsOf, type WatchedWorker } from './observe/watch/conditions.ts'
export { consumerLag, type LagLimits, lagSeverity, type PartitionOffsets, type Severity } from './observe/watch/lag.ts'
export {
  type Found,
  type GroupLag,
  type PendingLetters,
  type Reading,
  Watch,
  type WatchSources,
} from './observe/watch/watch.ts'
export type { WorkedTypeView, WorkerCondition, WorkerView } from './observe/watch/workers.ts'
export { type Clock, systemClock } from './time/clock.ts'
export type { Duration } from './time/duration.ts'
export { currentJob, currentTenant } from './worker/context.ts'
export type { WorkerOptions } from './worker/options.ts'
export type { Worker } from './worker/worker.ts'
