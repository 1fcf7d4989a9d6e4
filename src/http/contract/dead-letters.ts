import { z } from 'zod'
import { routes } from './route.ts'
import {
  AuditEntry,
  cursor,
  ErrorRecord,
  JobDetail,
  JobEvent,
  JobSummary,
  jobId,
  limit,
  page,
  reason,
  search,
  searchedPage,
  TIME_MS_MAX,
  timeMs,
  typeName,
} from './shapes.ts'

const params = z.strictObject({ id: jobId })
const fingerprint = z.string().min(1).max(100)

const LetterSummary = z.object({ job: JobSummary, error: ErrorRecord, fingerprint: z.string() })

/** Letters by id, or all that match a filter. */
export const Selection = z.union([
  z.strictObject({ ids: z.array(jobId).min(1).max(1_000) }),
  z.strictObject({
    type: typeName.optional(),
    fingerprint: fingerprint.optional(),
    search: search.optional(),
    sinceMs: z.number().int().min(0).max(TIME_MS_MAX).optional(),
    beforeMs: z.number().int().min(0).max(TIME_MS_MAX).optional(),
    limit: z.number().int().min(1).max(1_000_000_000).optional(),
  }),
])

const BulkOutcome = z.object({
  seen: z.number(),
  done: z.number(),
  refused: z.record(z.string(), z.number()),
  /** How many letters there are, if known. */
  total: z.number().nullable(),
  dryRun: z.boolean(),
  /** Whether a dry run was stopped because it took too long; its counts are then lower bounds. */
  interrupted: z.boolean(),
  /** Exactly the letters that were counted: send it back to act on them. */
  selection: Selection,
})

/** A bulk operation that goes on after the response. Follow it by its id or in the event stream. */
export const Operation = z.object({
  id: z.string(),
  kind: z.enum(['replay', 'discard', 'purge', 'erase', 'drain', 'obliterate']),
  status: z.enum(['running', 'done', 'stopped', 'failed']),
  who: z.string(),
  reason: z.string(),
  startedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
  progress: BulkOutcome.omit({ dryRun: true, interrupted: true, selection: true }),
  /** The error, if it failed. */
  error: z.string().nullable(),
})

const bulk = {
  selection: Selection,
  dryRun: z.boolean().default(false),
  /** Letters per second. */
  rate: z.number().min(0.1).max(100_000).optional(),
  force: z.boolean().default(false),
}

/** A dry run answers what would be done; otherwise the answer is the operation that has started. */
const BulkAnswer = z.object({ outcome: BulkOutcome.nullable(), operation: Operation.nullable() })

export const DEAD_LETTER_ROUTES = routes({
  listDeadLetters: {
    method: 'get',
    path: '/api/v1/dead-letters',
    summary: 'Dead letters, newest first. A search is written as for jobs; its times are those of the deaths.',
    role: 'viewer',
    needs: 'deadLetters',
    query: z.strictObject({
      type: typeName.optional(),
      fingerprint: fingerprint.optional(),
      search: search.optional(),
      sinceMs: timeMs.optional(),
      beforeMs: timeMs.optional(),
      cursor: cursor.optional(),
      limit,
    }),
    answer: searchedPage(LetterSummary),
  },
  groupDeadLetters: {
    method: 'get',
    path: '/api/v1/dead-letters/groups',
    summary: 'Dead letters by the fingerprint of their error, largest group first.',
    role: 'viewer',
    needs: 'deadLetters',
    query: z.strictObject({ type: typeName.optional(), search: search.optional() }),
    answer: z.object({
      groups: z.array(
        z.object({
          fingerprint: z.string(),
          type: z.string(),
          count: z.number(),
          error: z.string(),
          oldestAtMs: z.number(),
          newestAtMs: z.number(),
          newestId: z.string(),
          /** Exactly the letters counted in this group. */
          selection: Selection,
        }),
      ),
      /** Letters counted, newest first. */
      scanned: z.number(),
      /** False when counting was stopped; each count is then a lower bound. */
      complete: z.boolean(),
      /** All letters of the filter when counting began. */
      selection: Selection,
      /** When they were counted: where counting takes long, some time ago. */
      countedAtMs: z.number(),
    }),
  },
  showDeadLetter: {
    method: 'get',
    path: '/api/v1/dead-letters/{id}',
    summary: 'One dead letter with its payload, error, history and audit.',
    role: 'viewer',
    needs: 'deadLetters',
    params,
    answer: z.object({
      job: JobDetail,
      error: ErrorRecord,
      fingerprint: z.string(),
      history: z.array(JobEvent),
      audit: z.array(AuditEntry),
      /** Whether this process has the definition, and so checks an edited payload. */
      checked: z.boolean(),
      /** Whether parts of the payload are redacted. In an edited payload `[redacted]` at the same place keeps the stored value. */
      redacted: z.boolean(),
    }),
  },
  replayDeadLetter: {
    method: 'post',
    path: '/api/v1/dead-letters/{id}/replay',
    summary: 'Puts one letter back into the queue, optionally with a new payload. A dry run only checks.',
    role: 'operator',
    needs: 'deadLetters',
    params,
    body: z.strictObject({
      reason: reason.optional(),
      payload: z.unknown().optional(),
      force: z.boolean().default(false),
      dryRun: z.boolean().default(false),
    }),
    answer: z.object({ id: z.string(), replayed: z.boolean() }),
  },
  replayDeadLetters: {
    method: 'post',
    path: '/api/v1/dead-letters/replay',
    summary: 'Replays a selection at a rate.',
    role: 'operator',
    needs: 'deadLetters',
    body: z.strictObject({ ...bulk, reason: reason.optional() }),
    answer: BulkAnswer,
    status: 202,
  },
  discardDeadLetters: {
    method: 'post',
    path: '/api/v1/dead-letters/discard',
    summary: 'Discards a selection, with a reason. It can be undone while the letters are kept.',
    role: 'operator',
    needs: 'deadLetters',
    body: z.strictObject({ ...bulk, reason }),
    answer: BulkAnswer,
    status: 202,
  },
  undoDiscard: {
    method: 'post',
    path: '/api/v1/dead-letters/{id}/undo',
    summary: 'Makes a discarded job a dead letter again.',
    role: 'operator',
    needs: 'deadLetters',
    params,
    body: z.strictObject({ reason: reason.optional() }),
    answer: z.object({ id: z.string(), undone: z.literal(true) }),
  },
  purgeDeadLetters: {
    method: 'post',
    path: '/api/v1/dead-letters/purge',
    summary: 'Deletes a selection for good, with a reason. Critical types need force.',
    role: 'admin',
    needs: 'deadLetters',
    body: z.strictObject({ ...bulk, reason }),
    answer: BulkAnswer,
    status: 202,
  },
  eraseJobs: {
    method: 'post',
    path: '/api/v1/dead-letters/erase',
    summary:
      'Erases dead letters, or by id any jobs that are over or gone, with a reason: also what the audit says of them. Critical dead letters need force.',
    role: 'admin',
    needs: 'deadLetters',
    body: z.strictObject({ ...bulk, reason }),
    answer: BulkAnswer,
    status: 202,
  },
  listOperations: {
    method: 'get',
    path: '/api/v1/operations',
    summary: 'Bulk operations of this process, newest first.',
    role: 'viewer',
    answer: z.object({ operations: z.array(Operation) }),
  },
  showOperation: {
    method: 'get',
    path: '/api/v1/operations/{id}',
    summary: 'The progress of a bulk operation.',
    role: 'viewer',
    params,
    answer: Operation,
  },
  stopOperation: {
    method: 'delete',
    path: '/api/v1/operations/{id}',
    summary: 'Stops a bulk operation after its current page. What is done stays done.',
    role: 'operator',
    params,
    answer: Operation,
  },
  listAudit: {
    method: 'get',
    path: '/api/v1/audit',
    summary: 'Manual actions: who, when, why, and on what.',
    role: 'viewer',
    needs: 'deadLetters',
    query: z.strictObject({
      jobId: jobId.optional(),
      who: z.string().min(1).max(200).optional(),
      action: z.string().min(1).max(40).optional(),
      cursor: cursor.optional(),
      limit,
    }),
    answer: page(AuditEntry),
  },
})
