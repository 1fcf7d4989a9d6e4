export {
  type ActuatorComponent,
  type ActuatorHealth,
  type ActuatorOptions,
  actuatorEndpoint,
  actuatorHealth,
  type Connectivity,
  type WatchHealthRules,
  watchHealth,
  withComponents,
} from './actuator.ts'
export {
  type Alarm,
  type AlarmName,
  type AlarmRules,
  type ArrivalOptions,
  attachArrivalAlarms,
  evaluateAlarms,
  watchRules,
} from './alarms.ts'
export { type Condition, type ConditionName, conditionsOf, type WatchedWorker } from './conditions.ts'
export type { AddressJson, DlqAuditJson, LetterJson } from './dead-letters/letter-json.ts'
export { dlqRoutes } from './dead-letters/routes.ts'
export {
  type DlqOutcome,
  OpenTopicDesk,
  type OpenTopicDeskOptions,
  openTopicDesk,
  type ReplayAllOutcome,
  type ReplayAllProgress,
  TopicDesk,
  type TopicDeskOptions,
} from './dead-letters/topic-desk.ts'
export { type WatchMetrics, type WatchMetricsOptions, watchMetrics } from './metrics.ts'
export {
  ESCROW_DEFAULT_POLICY,
  ESCROW_TOPICS,
  ESCROW_WORKERS,
  type EscrowPolicy,
  type EscrowTopic,
  type EscrowWorker,
  escrowLagLimits,
  escrowPolicy,
  isFinancialTopic,
} from './topology.ts'
export { consumerLag, type PartitionOffsets, type Reading, Watch, type WatchSources } from './watch.ts'
