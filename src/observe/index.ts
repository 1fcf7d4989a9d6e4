/** `millrace/observe`: metrics, health, alerts and traces. */

export { MemoryPresence } from '../engine/memory-presence.ts'
export type { AtWork, Beat, JobAtWork, Presence, RememberingPresence, Seen } from '../engine/presence.ts'
export type { AlertFacts } from '../events.ts'
export type { TracedStart, Tracer, Tracing } from '../job/job.ts'
export { type Alerting, type AlertingOptions, startAlerting } from './alerting/alerting.ts'
export type { AlertNotice, AlertState } from './alerting/evaluator.ts'
export { checkAlerts, type FigureAlert, type FigureLimits, figureRules } from './alerting/figure-rules.ts'
export { type HealthRuleOptions, healthRules } from './alerting/health-rules.ts'
export type { AlertRule, Breach, Sample as AlertSample } from './alerting/rule.ts'
export { type AlertSink, logSink, type WebhookOptions, webhookSink } from './alerting/sinks.ts'
export { watchRules } from './alerting/watch-rules.ts'
export { type Alert, type Alerter, attachAlerts } from './alerts.ts'
export { attachFigures, type Figured, type KeyFigures } from './figures/collect.ts'
export type { EndedFigures, Figures, StoredFigures } from './figures/figures.ts'
export { checkHealth, type Examined, type HealthOptions } from './health/check.ts'
export {
  type ActuatorComponent,
  type ActuatorHealth,
  actuatorHealth,
  type WorkerHealthCheck,
  workerHealthCheck,
} from './health/forms.ts'
export type { Health, HealthChecks, HealthDetails, HealthStatus, HealthWord } from './health/health.ts'
export {
  type Connectivity,
  type WatchHealthRules,
  watchHealth,
  withComponents,
} from './health/watch.ts'
export type { Metrics } from './metrics/collector.ts'
export { attachMetrics, type Measured, type MetricsOptions, type MillMetrics } from './metrics/metrics.ts'
export type { TableMetrics } from './metrics/tables.ts'
export { attachWatchMetrics, type WatchMetrics, type WatchMetricsOptions } from './metrics/watch.ts'
export { attachPresence, type PresenceOptions } from './presence.ts'
export { attachTracing, type Traced } from './tracing/tracing.ts'
export {
  type Alarm,
  type AlarmName,
  type AlarmRules,
  type ArrivalOptions,
  attachArrivalAlarms,
  evaluateAlarms,
} from './watch/alarms.ts'
export { type Condition, type ConditionName, conditionsOf, type WatchedWorker } from './watch/conditions.ts'
export { consumerLag, type LagLimits, lagSeverity, type PartitionOffsets, type Severity } from './watch/lag.ts'
export {
  type Found,
  type GroupLag,
  type PendingLetters,
  type Reading,
  Watch,
  type WatchSources,
} from './watch/watch.ts'
export type { WorkedTypeView, WorkerCondition, WorkerView } from './watch/workers.ts'
