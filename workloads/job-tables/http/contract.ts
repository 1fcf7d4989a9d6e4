/** The routes of the dashboard's page about job tables, as data. */
import { z } from 'zod'

const count = z.number()

const RowCounts = z.object({
  counts: z.object({ queued: count, processing: count, completed: count, failed: count }),
  stuck: count,
  stuckMs: z.number().nullable(),
  stuckExhausted: count,
  stuckHeldBack: count,
  leaseless: count,
  exhausted: count,
  timedOut: count,
  overdrawn: count,
  due: count,
  dueMs: z.number().nullable(),
})

/** Without the user's own columns: they may hold anything. */
const Stuck = z.object({
  id: z.string(),
  lockedBy: z.string().nullable(),
  stage: z.string().nullable(),
  attempt: z.number(),
  maxAttempts: z.number(),
  endedAtMs: z.number(),
})

const Supervised = z.object({
  jobId: z.string(),
  type: z.string(),
  table: z.string(),
  atMs: z.number(),
  lockedBy: z.string().nullable(),
  who: z.string().nullable(),
  reason: z.string().nullable(),
})

const Found = z.object({
  severity: z.enum(['ok', 'warning', 'error']),
  subject: z.string(),
  detail: z.string(),
  advice: z.string().nullable(),
})

const act = {
  method: 'post',
  role: 'operator',
  params: z.strictObject({ table: z.string().min(1).max(63), id: z.string().min(1).max(300) }),
  body: z.strictObject({ reason: z.string().trim().min(1).max(500) }),
  answer: z.object({ table: z.string(), id: z.string() }),
} as const

export const TABLE_ROUTES = {
  showJobTables: {
    method: 'get',
    path: '/api/v1/job-tables',
    summary: 'Your own job tables: rows by status, stuck rows, what is missing, and what the reaper did last.',
    role: 'viewer',
    answer: z.object({
      tables: z.array(
        z.object({
          table: z.string(),
          isReady: z.boolean(),
          rows: RowCounts.nullable(),
          /** The longest stuck first, at most 20. */
          stuckRows: z.array(Stuck),
        }),
      ),
      /** A count that reaches it means at least so many. */
      countMax: z.number(),
      reapers: z.number(),
      /** Null if the index on these events is missing. */
      recent: z.array(Supervised).nullable(),
      findings: z.array(Found),
    }),
  },
  requeueStuckRow: {
    ...act,
    path: '/api/v1/job-tables/{table}/rows/{id}/requeue',
    summary: 'Queues a row whose lease has ended, due now.',
  },
  failStuckRow: {
    ...act,
    path: '/api/v1/job-tables/{table}/rows/{id}/fail',
    summary: 'Fails a row whose lease has ended.',
  },
} as const

export type TableRoutes = typeof TABLE_ROUTES
