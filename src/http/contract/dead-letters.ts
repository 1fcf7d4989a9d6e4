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
  TIME_MS_MAX,
  timeMs,
  typeName,
} from './shapes.ts'

const params = z.strictObject({ id: jobId })
const fingerprint = z.string().min(1).max(100)

const LetterSummary = z.object({ job: JobSummary, error: ErrorRecord, fingerprint: z.string() })

/** Named letters, or all that a filter finds. */
export const Selection = z.union([
  z.strictObject({ ids: z.array(jobId).min(1).max(1_000) }),
  z.strictObject({
    type: typeName.optional(),
    fingerprint: fingerprint.optional(),
    sinceMs: z.number().int().min(0).max(TIME_MS_MAX).optional(),
    beforeMs: z.number().int().min(0).max(TIME_MS_MAX).optional(),
    limit: z.number().int().min(1).max(1_000_000_000).optional(),
  }),
])

const BulkOutcome = z.object({
  seen: z.number(),
  done: z.number(),
  refused: z.record(z.string(), z.number()),
  /** How many there are to look at, where that is known without looking. */
  total: z.number().nullable(),
  dryRun: z.boolean(),
  /** Whether a dry run was stopped because it took too long: then its counts are lower bounds. */
  interrupted: z.boolean(),
  /** What was counted, and nothing that dies later: send it back to act on exactly these letters. */
  selection: Selection,
})

/** A bulk act that goes on after the answer. Follow it by its id, or by the event stream. */
export const Operation = z.object({
  id: z.string(),
  kind: z.enum(['replay', 'discard', 'purge']),
  status: z.enum(['running', 'done', 'stopped', 'failed']),
  who: z.string(),
  reason: z.string(),
  startedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
  progress: BulkOutcome.omit({ dryRun: true, interrupted: true, selection: true }),
  /** What ended it, where it failed. */
  error: z.string().nullable(),
})

const bulk = {
  selection: Selection,
  dryRun: z.boolean().default(false),
  /** Letters per second. */
  rate: z.number().min(0.1).max(100_000).optional(),
  force: z.boolean().default(false),
}

/** A dry run is answered at once with what would be done, and anything else with the operation that has begun. */
const BulkAnswer = z.object({ outcome: BulkOutcome.nullable(), operation: Operation.nullable() })

export const DEAD_LETTER_ROUTES = routes({
  listDeadLetters: {
    method: 'get',
    path: '/api/v1/dead-letters',
    summary: 'Dead letters, the newest death first.',
    role: 'viewer',
    needs: 'deadLetters',
    query: z.strictObject({
      type: typeName.optional(),
      fingerprint: fingerprint.optional(),
      sinceMs: timeMs.optional(),
      beforeMs: timeMs.optional(),
      cursor: cursor.optional(),
      limit,
    }),
    answer: page(LetterSummary),
  },
  groupDeadLetters: {
    method: 'get',
    path: '/api/v1/dead-letters/groups',
    summary:
      'What has gone wrong and how often: dead letters by the fingerprint of their error, the largest group first.',
    role: 'viewer',
    needs: 'deadLetters',
    query: z.strictObject({ type: typeName.optional() }),
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
          /** The letters counted in this group, and none that die later. */
          selection: Selection,
        }),
      ),
      /** Letters counted, the newest first. */
      scanned: z.number(),
      /** False when counting them all would have taken too long: then each count is a lower bound. */
      complete: z.boolean(),
      /** All letters of the filter that were there when counting began, and none that die later. */
      selection: Selection,
    }),
  },
  showDeadLetter: {
    method: 'get',
    path: '/api/v1/dead-letters/{id}',
    summary: 'One dead letter with its payload, its error, its history and what was done to it.',
    role: 'viewer',
    needs: 'deadLetters',
    params,
    answer: z.object({
      job: JobDetail,
      error: ErrorRecord,
      fingerprint: z.string(),
      history: z.array(JobEvent),
      audit: z.array(AuditEntry),
      /** Whether this process knows the definition, so that an edited payload is checked before it is stored. */
      checked: z.boolean(),
      /** Whether parts of the payload are redacted: then it can be replayed as it is, not edited. */
      redacted: z.boolean(),
    }),
  },
  replayDeadLetter: {
    method: 'post',
    path: '/api/v1/dead-letters/{id}/replay',
    summary: 'Puts one letter back into the queue, with a mended payload if one is given. A dry run only checks.',
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
    summary: 'Takes a selection off the list, with a reason. It can be undone while the letters are kept.',
    role: 'operator',
    needs: 'deadLetters',
    body: z.strictObject({ ...bulk, reason }),
    answer: BulkAnswer,
    status: 202,
  },
  undoDiscard: {
    method: 'post',
    path: '/api/v1/dead-letters/{id}/undo',
    summary: 'Makes a discarded job the dead letter that it was.',
    role: 'operator',
    needs: 'deadLetters',
    params,
    body: z.strictObject({ reason: reason.optional() }),
    answer: z.object({ id: z.string(), undone: z.literal(true) }),
  },
  purgeDeadLetters: {
    method: 'post',
    path: '/api/v1/dead-letters/purge',
    summary: 'Deletes a selection for good, with a reason. Critical types take force.',
    role: 'admin',
    needs: 'deadLetters',
    body: z.strictObject({ ...bulk, reason }),
    answer: BulkAnswer,
    status: 202,
  },
  listOperations: {
    method: 'get',
    path: '/api/v1/operations',
    summary: 'Bulk acts begun in this process, the newest first.',
    role: 'viewer',
    answer: z.object({ operations: z.array(Operation) }),
  },
  showOperation: {
    method: 'get',
    path: '/api/v1/operations/{id}',
    summary: 'How far a bulk act is.',
    role: 'viewer',
    params,
    answer: Operation,
  },
  stopOperation: {
    method: 'delete',
    path: '/api/v1/operations/{id}',
    summary: 'Stops a bulk act after the page of letters that it works on. What is done stays done.',
    role: 'operator',
    params,
    answer: Operation,
  },
  listAudit: {
    method: 'get',
    path: '/api/v1/audit',
    summary: 'What was done by hand: who, when, why, to what.',
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
