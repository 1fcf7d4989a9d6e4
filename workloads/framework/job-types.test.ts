import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CRITICAL_JOB_TYPES, isJobType, JOB_TYPES, type JobType } from './index.ts'

/** Complete and without more, by its type: it does not compile when `JobType` is another union. */
const UNION = {
  'memory-consolidation': 'MEMORY_CONSOLIDATION',
  'memory-cleanup': 'MEMORY_CLEANUP',
  'memory-importance-decay': 'MEMORY_IMPORTANCE_DECAY',
  'embedding-batch': 'EMBEDDING_BATCH',
  'embedding-reindex': 'EMBEDDING_REINDEX',
  'trajectory-process': 'TRAJECTORY_PROCESS',
  'pattern-training': 'PATTERN_TRAINING',
  'ewc-consolidation': 'EWC_CONSOLIDATION',
  'session-cleanup': 'SESSION_CLEANUP',
  'session-archive': 'SESSION_ARCHIVE',
  'index-optimization': 'INDEX_OPTIMIZATION',
  'index-rebalance': 'INDEX_REBALANCE',
  'webhook-dispatch': 'WEBHOOK_DISPATCH',
  'slack-sync': 'SLACK_SYNC',
  'quota-check': 'QUOTA_CHECK',
  'audit-export': 'AUDIT_EXPORT',
  'data-export': 'DATA_EXPORT',
  'data-deletion': 'DATA_DELETION',
} as const satisfies Record<JobType, keyof typeof JOB_TYPES>

// A17..A35 X073
test('the registry has the eighteen types under their names', () => {
  assert.equal(Object.keys(JOB_TYPES).length, 18)
  assert.deepEqual(Object.fromEntries(Object.entries(UNION).map(([type, name]) => [name, type])), { ...JOB_TYPES })
  assert.ok(Object.isFrozen(JOB_TYPES))
})

test('a type is listed or not, whatever it is', () => {
  for (const type of Object.values(JOB_TYPES)) assert.ok(isJobType(type), type)
  for (const other of [
    '',
    'WEBHOOK_DISPATCH',
    'webhook',
    'memory-consol',
    'webhook-disp',
    'constructor',
    null,
    undefined,
    7,
  ]) {
    assert.equal(isJobType(other), false, String(other))
  }
})

// A167
test('the critical types are listed ones', () => {
  assert.deepEqual(
    CRITICAL_JOB_TYPES.filter((type) => !isJobType(type)),
    [],
  )
})
