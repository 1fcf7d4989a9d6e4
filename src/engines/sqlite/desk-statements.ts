/** The statements of the dead-letter desk; all others are in statements.ts. */
import type { AuditFilter, DeadLetterFilter } from '../../engine/dead-letters.ts'
import { UNLEASED, VIEW_COLUMNS } from './statements.ts'

const DEAD = `status = 'dead_letter' AND ended IS NULL`

/** The branch per filter lets each use the index. */
export function listDead(filter: DeadLetterFilter): string {
  const conditions = [
    DEAD,
    filter.type !== undefined && 'type = :type',
    filter.sinceMs !== undefined && 'completed_at >= :since',
    filter.beforeMs !== undefined && 'completed_at < :before',
    filter.after !== undefined && '(completed_at, id) < (:afterAt, :afterId)',
  ]
  return `SELECT ${VIEW_COLUMNS} FROM job_queue INDEXED BY idx_job_queue_dead
WHERE ${conditions.filter(Boolean).join(' AND ')} ORDER BY completed_at DESC, id DESC LIMIT :limit`
}

/** Back to the queue with all its options: only the record of the failure goes (B127). */
export const REQUEUE_DEAD = `
UPDATE job_queue SET status = 'queued', attempts = 0, scheduled_at = :now, error = NULL, error_record = NULL,
  completed_at = NULL, started_at = NULL, progress = NULL, idempotency_key = :key,
  waiting_for = (SELECT count(*) FROM job_after WHERE job_after.job_id = job_queue.id AND held = 1),
  payload = coalesce(:payload, payload), payload_version = coalesce(:version, payload_version), replays = replays + 1,
  ${UNLEASED}
WHERE id = :id AND ${DEAD}`

/** Whoever tidies up goes by the end, so a letter that died long ago can be undone for as long as any other. */
export const DISCARD_DEAD = `
UPDATE job_queue SET ended = 'discarded', completed_at = :now, updated_at = :now WHERE id = :id AND ${DEAD}`

/** With the time of death that it had. */
export const UNDISCARD = `
UPDATE job_queue SET ended = NULL, completed_at = coalesce(:completedAt, completed_at), updated_at = :now
WHERE id = :id AND status = 'dead_letter' AND ended = 'discarded'`

export const REMOVE_DEAD = `
DELETE FROM job_queue WHERE id = :id AND status = 'dead_letter' AND (ended IS NULL OR ended = 'discarded')`
export const REMOVE_EVENTS = `DELETE FROM job_events WHERE job_id = :id`

export const FIND_LATEST_SEQ = `SELECT seq FROM job_latest WHERE type = :type AND latest_key = :latestKey`

export const RECORD_ACT = `
INSERT INTO job_audit (at, who, reason, action, job_id, type, subject, before, after)
VALUES (:now, :who, :reason, :action, :id, :type, :subject, :before, :after)`

/** What the job was before it was discarded. */
export const BEFORE_DISCARD = `
SELECT before FROM job_audit WHERE job_id = :id AND action = 'discard' ORDER BY seq DESC LIMIT 1`

export function listAudit(filter: AuditFilter): string {
  const conditions = [
    filter.jobId !== undefined && 'job_id = :id',
    filter.who !== undefined && 'who = :who',
    filter.action !== undefined && 'action = :action',
    filter.before !== undefined && 'seq < :before',
  ].filter(Boolean)
  return `SELECT seq, at, who, reason, action, job_id, type, subject, before, after FROM job_audit
${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} ORDER BY seq DESC LIMIT :limit`
}
