export type { Duty } from '../../src/keeper/side-duties.ts'
export { type ApprovedFetch, type ApprovedFetchOptions, approvedFetch } from '../language-models/approved-fetch.ts'
export { type ModelCall, ModelFailure, type Usage } from '../language-models/model-call.ts'
export { type ConversationsConfig, loadConfig } from './config.ts'
export { type HookHandlerOptions, type HookResult, hookHandler } from './hook/handler.ts'
export type { HookInput } from './hook/input.ts'
export { type TakeInOptions, type TakenIn, takeInSpool } from './hook/intake.ts'
export { type AnthropicModelOptions, anthropicModel } from './models/anthropic.ts'
export { type ModelConfig, type ModelParts, modelConfigSchema, modelFrom } from './models/config.ts'
export { type LocalModelOptions, localModel } from './models/local.ts'
export {
  LEARNING_CATEGORIES,
  type Model,
  type ModelAnswer,
  type ModelFinding,
  type ModelLearning,
  type ModelMessage,
  PERSONAL_DATA_CATEGORIES,
} from './models/model.ts'
export { type OpenAiModelOptions, openAiModel } from './models/openai.ts'
export type { ExtractSettings, PipelineParts, UploadSettings } from './options.ts'
export {
  type Conversations,
  conversationJobs,
  openConversations,
  openPipeline,
  type Pipeline,
  type PipelineOptions,
} from './pipeline.ts'
export {
  CONVERSATION_LATENCY_MS,
  type ConversationAlert,
  checkAlerts,
  conversationRules,
  type StatsLimits,
} from './queue/alert-rules.ts'
export { calculateBackoff } from './queue/backoff.ts'
export {
  DEAD_LETTERS_MAX,
  type DeadLetterMonitorOptions,
  MONITOR_EVERY_MS,
  monitorDeadLetters,
  REPEAT_MS,
} from './queue/dead-letter-monitor.ts'
export type { CreateJob, DeadLetterSummary, Job } from './queue/job.ts'
export { JobQueueRepository, type RepositoryOptions } from './queue/job-queue-repository.ts'
export { type JobHandler, JobWorker, type JobWorkerOptions } from './queue/job-worker.ts'
export {
  CLEANUP_EVERY_MS,
  cleanupCompletedJobs,
  type MaintenanceOptions,
  RELEASE_EVERY_MS,
  RETENTION_DAYS,
  releaseStaleLeases,
  STALE_LEASE_MS,
} from './queue/maintenance.ts'
export { collectMetrics, type MetricsOptions, type QueueMetrics } from './queue/metrics.ts'
export type { RuleFinding, Sanitize, Sanitized } from './sanitize/rule.ts'
export { createSanitizer, SANITIZATION_VERSION, type SanitizerOptions } from './sanitize/sanitize.ts'
export {
  type LoadedRules,
  loadUserRules,
  type PatternRule,
  type TermRule,
  type UserRule,
  userRulesFile,
} from './sanitize/user-rules.ts'
export { runMigrations } from './store/database.ts'
export { type Forgotten, forgetConversation, type Published, retainConversations } from './store/forget.ts'
export { type Learning, LearningRepository } from './store/learnings.ts'
export { type DeployedRegistry, type DeployOptions, deployRegistry } from './upload/contract/deploy.ts'
export { REGISTRY_ABI } from './upload/contract/learning-registry.ts'
export { type MineUploadOptions, mineUpload, type UploadResult } from './upload/mine-upload.ts'
export type { UploadStep } from './upload/record-learning.ts'
