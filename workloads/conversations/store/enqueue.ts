import type { DatabaseSync } from 'node:sqlite'
import { newJobId } from '../../../src/job/job.ts'
import { toIso } from '../../../src/time/iso.ts'
import { CONVERSATION_JOBS, type ConversationJobType } from '../jobs/contract.ts'

/** Under the key itself, or under one of those that begin with it and a hyphen. */
const FIND_WAITING = `SELECT id FROM job_queue WHERE status IN ('queued', 'failed')
AND (idempotency_key = :key OR idempotency_key BETWEEN :key || '-' AND :key || '.') LIMIT 1`

const IS_RUNNING = `SELECT 1 AS found FROM job_queue WHERE idempotency_key = ? AND status = 'in_progress'`

/** A finished row of another program may still hold the key. */
const RELEASE_KEY = `UPDATE job_queue SET released_key = idempotency_key, idempotency_key = NULL
WHERE idempotency_key = ? AND status IN ('completed', 'dead_letter')`

const INSERT = `INSERT INTO job_queue
(id, type, payload, idempotency_key, priority, max_retries, scheduled_at, created_at, updated_at)
VALUES (:id, :type, :payload, :key, :priority, :attempts, :now, :now, :now)`

export interface NewConversationJob {
  readonly type: ConversationJobType
  /** The id of the conversation or learning that the job is about. */
  readonly about: string
  readonly payload: unknown
}

/**
 * Enqueues a job in the caller's transaction. A queued job about the same thing does this work too, so nothing is added.
 * A running one may have read its input already, so a second job is queued behind it under a key of its own.
 */
export function enqueueJob(
  database: DatabaseSync,
  { type, about, payload }: NewConversationJob,
  nowMs: number,
): { readonly id: string; readonly enqueued: boolean } {
  const { key, priority, attempts } = CONVERSATION_JOBS[type]
  const id = newJobId(nowMs)
  const waiting = database.prepare(FIND_WAITING).get({ key: key(about) })
  if (waiting !== undefined) return { id: String(waiting.id), enqueued: false }
  const keys = [key(about), `${key(about)}-next`, `${key(about)}-${id}`]
  const now = toIso(nowMs)
  for (const candidate of keys) {
    if (database.prepare(IS_RUNNING).get(candidate) !== undefined) continue
    database.prepare(RELEASE_KEY).run(candidate)
    database
      .prepare(INSERT)
      .run({ id, type, payload: JSON.stringify(payload), key: candidate, priority, attempts, now })
    return { id, enqueued: true }
  }
  throw new Error('unreachable: the last key contains a new id')
}
