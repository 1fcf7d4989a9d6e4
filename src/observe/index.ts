/** `millrace/observe`: metrics, health, alerts, traces, presence and logs. */
export { MemoryPresence } from '../engine/memory-records.ts'
export type { AtWork, Beat, EndedAttempts, JobAtWork, Presence, RememberingPresence, Seen } from '../engine/presence.ts'
export type { Alert, Severity } from '../events.ts'
export type { TracedStart, Tracer, Tracing } from '../job/job.ts'
export { type Alerting, type AlertingOptions, startAlerting } from './alerts/alerting.ts'
export { type Alerter, type AlertMessage, attachAlerts } from './alerts/dead-letter-alerts.ts'
export type { AlertNotice, AlertState } from './alerts/evaluator.ts'
export { type HealthRuleOptions, healthRules } from './alerts/health-rules.ts'
export type { AlertRule, Breach, Sample } from './alerts/rule.ts'
export { type AlertSink, logAlerter, logSink, type WebhookOptions, webhookSink } from './alerts/sinks.ts'
export {
  checkHealth,
  type Health,
  type HealthAnswer,
  type HealthChecks,
  type HealthDetails,
  type HealthEndpoint,
  type HealthOptions,
  type HealthSources,
  type HealthStatus,
  type HealthWord,
} from './health.ts'
export type { LagLimits, ObservedTopics, PendingLetters } from './lag.ts'
export type { LogOptions } from './log.ts'
export type { Instrument, MakeInstrument, MetricParts, Metrics } from './metrics/instrument.ts'
export { attachMetrics, type MetricsOptions } from './metrics/metrics.ts'
export type { Found, ObservedMill } from './observed-mill.ts'
export { attachPresence, type PresenceOptions } from './presence.ts'
export { attachStats, type EndedStats, type Stats, type StatsCollector, type StoredStats } from './stats/stats.ts'
export { attachTracing } from './tracing.ts'
export type { WorkedTypeView, WorkerCondition, WorkerView } from './workers.ts'
