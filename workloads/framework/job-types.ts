import { UnknownTypeError } from '../../src/errors.ts'

/** Other types need no entry here: define them, and `mill.enqueue` takes them. */
export const JOB_TYPES = Object.freeze({
  MEMORY_CONSOLIDATION: 'memory-consolidation',
  MEMORY_CLEANUP: 'memory-cleanup',
  MEMORY_IMPORTANCE_DECAY: 'memory-importance-decay',
  EMBEDDING_BATCH: 'embedding-batch',
  EMBEDDING_REINDEX: 'embedding-reindex',
  TRAJECTORY_PROCESS: 'trajectory-process',
  PATTERN_TRAINING: 'pattern-training',
  EWC_CONSOLIDATION: 'ewc-consolidation',
  SESSION_CLEANUP: 'session-cleanup',
  SESSION_ARCHIVE: 'session-archive',
  INDEX_OPTIMIZATION: 'index-optimization',
  INDEX_REBALANCE: 'index-rebalance',
  WEBHOOK_DISPATCH: 'webhook-dispatch',
  SLACK_SYNC: 'slack-sync',
  QUOTA_CHECK: 'quota-check',
  AUDIT_EXPORT: 'audit-export',
  DATA_EXPORT: 'data-export',
  DATA_DELETION: 'data-deletion',
})

export type JobType = (typeof JOB_TYPES)[keyof typeof JOB_TYPES]

const LISTED: readonly string[] = Object.values(JOB_TYPES)

export function isJobType(type: unknown): type is JobType {
  return typeof type === 'string' && LISTED.includes(type)
}

export function checkJobType(type: unknown): JobType {
  if (isJobType(type)) return type
  throw new UnknownTypeError(String(type), LISTED)
}

/** Types whose dead letters must raise an alert. */
export const CRITICAL_JOB_TYPES = ['data-deletion', 'webhook-dispatch', 'audit-export'] as const

export function isCriticalJobType(type: string): boolean {
  return CRITICAL_JOB_TYPES.some((critical) => critical === type)
}
